"""Compare the processes of a job on a workspace with those of the local engine."""
