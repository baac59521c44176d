"""The program of a parallel step: it divides the data into mini-batches and runs them in worker processes.

It runs with the step's Python under another package name, so it uses the standard library of Python 3.7 only, and
pandas for tables.
"""
