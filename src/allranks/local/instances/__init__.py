"""Emulated instances. The engine imports `kinds`; the supervisor imports only the module of its kind, which needs the
standard library only."""
