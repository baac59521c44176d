"""Where an emulated instance lives.

A kind of instances is a package with two halves: `kind`, which the engine imports, and `machines`, which the supervisor
imports in a process that has the standard library alone.
"""
