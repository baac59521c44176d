"""Emulated instances. The engine imports `supervisor`; the supervisor process imports only the module of its kind of
instances, which needs the standard library only."""
