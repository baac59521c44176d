"""The kinds of emulated machine, seen from the supervisor: how a keeper gets onto one."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol


class Machines(Protocol):
    """Constructed once a run, in the supervisor; raises OSError where this machine cannot offer the kind."""

    def fork(self, index: int, address: str) -> int:
        """Forks a keeper for the machine of that index; 0 in the keeper. Raises OSError, in the supervisor alone, where
        that fails."""

    def prepare(self, index: int) -> None:
        """Called in the keeper, before it is known which step it is for: makes ready what is the same for all of them.
        Raises OSError where that fails."""

    def enter(self, machine: dict[str, Any]) -> None:
        """Called in the keeper: moves it onto the machine as the step wants it. Raises OSError where that fails."""


def find(module: str) -> type[Machines]:
    """Return the class `Machines` of a module, which a kind of instances names in its `machines`."""
    found: type[Machines] = import_module(module).Machines
    return found
