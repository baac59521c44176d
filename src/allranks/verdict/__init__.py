"""Why a step failed: the rank that failed first, and the cause, from a run's record or a folder of logs."""
