"""The local scheduler: a process that runs scheduled pipelines through the engine, and loses nothing if it is killed.

Every firing is written to the ledger before its run starts. Each run is a process of its own, which stops together with
the scheduler. The next scheduler resumes it.
"""
