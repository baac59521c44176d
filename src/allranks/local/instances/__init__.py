"""Emulated instances.

Each kind of instance is a package with two modules. The engine imports `kind`. The supervisor imports `isolation`, in a
process that can use the standard library only.
"""
