"""The kinds of emulated machine, seen from the supervisor: how a keeper gets onto one. A new kind is one file and one
line here."""

from __future__ import annotations

from typing import Any, Protocol

from allranks.local.supervision.loopback import LoopbackMachines
from allranks.local.supervision.rack import RackMachines


class Machines(Protocol):
    """Constructed once a run, in the supervisor; raises OSError where this machine cannot offer the kind."""

    def fork(self, machine: dict[str, Any]) -> int:
        """Forks a keeper for the machine; 0 in the keeper. Raises OSError, in the supervisor alone, where that
        fails."""

    def enter(self, machine: dict[str, Any]) -> None:
        """Called in the keeper: moves it onto the machine. Raises OSError where that fails."""


MACHINES: dict[str, type[Machines]] = {"loopback": LoopbackMachines, "rack": RackMachines}
