"""Emulated instances. The engine imports `kinds`; the supervisor, in a process with the standard library only, the
module of the kind that it serves."""
