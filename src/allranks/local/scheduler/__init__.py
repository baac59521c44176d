"""The local scheduler: a process that runs scheduled pipelines through the engine, and loses nothing if it is killed.

Every firing is written to the ledger before its run starts. Each run is a separate process, which continues if the
scheduler is killed. The next scheduler finds it running, or resumes it.
"""
