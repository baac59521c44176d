"""The kinds of emulated machine, seen from the supervisor: how a keeper gets onto one. A new kind is one file and one
line here."""

from __future__ import annotations

from typing import Any, Protocol

from allranks.local.instances.loopback.machines import LoopbackMachines
from allranks.local.instances.rack.machines import RackMachines


class Machines(Protocol):
    """Constructed once a run, in the supervisor; raises OSError where this machine cannot offer the kind."""

    def fork(self, index: int, address: str) -> int:
        """Fork a keeper for the machine of that index; 0 in the keeper. Raise OSError, in the supervisor alone, where
        that fails."""

    def prepare(self, index: int) -> None:
        """Called in the keeper, before it is known which step it is for: makes ready what is the same for all of them.
        Raise OSError if that fails."""

    def enter(self, machine: dict[str, Any]) -> None:
        """Called in the keeper: moves it onto the machine as the step wants it. Raise OSError if that fails."""


MACHINES: dict[str, type[Machines]] = {"loopback": LoopbackMachines, "rack": RackMachines}
