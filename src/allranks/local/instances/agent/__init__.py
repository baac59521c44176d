"""The processes that start ranks and see to it that none outlives its run. They import the standard library alone, so
that they start in milliseconds.

    engine -> supervisor (one a run) -> keeper (one for each instance of a step) -> ranks

The engine writes commands to the supervisor's stdin and reads events from its stdout, one JSON object a line. The end
of stdin means that the
engine is gone, however it went: the supervisor then ends every keeper, and a keeper that loses its supervisor ends
every rank.
"""
