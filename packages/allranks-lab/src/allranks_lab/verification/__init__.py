"""Compare what a workspace gives the processes of a job with what the local engine gives them."""
