"""Experiments on runs: faults, rehearsals of evictions, debuggers, the comparison of a workspace with this machine."""
