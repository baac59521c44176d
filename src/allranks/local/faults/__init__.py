"""Fault injection: end, stop or slow down ranks and instances of a run, as `--fault` requests it."""
