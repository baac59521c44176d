"""Experiments on runs: faults, rehearsals of evictions, and the comparison of a workspace with this machine."""
