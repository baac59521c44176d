"""The processes that start ranks and end them with their run. They import the standard library only, so that they start
in milliseconds.

    engine -> supervisor (one per run) -> agent (one per instance of a step) -> ranks

                      -> starter (one per interpreter and modules) -> agent -> ranks

A starter has imported the modules that the ranks need. An agent that is forked from it forks its ranks, which then
need not import them. All other agents are forked from the supervisor and start ranks as new processes.

The engine writes commands to the supervisor's stdin and reads events from its stdout, one JSON object per line. When
stdin ends, the engine has exited or was killed: the supervisor then ends every agent. An agent whose supervisor ends
kills its ranks.
"""
