"""Emulated instances. The engine imports `supervisor`; its process of that name imports only the module of its kind,
which needs the standard library only."""
