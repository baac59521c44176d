"""The local scheduler: a process that fires schedules through the engine, and forgets nothing when it is killed.

What fires when is written into the ledger before anything starts, and each run is a process of its own, which outlives
a scheduler that is killed, by design: the next one finds it still running, or goes on with what it had not finished.
"""
