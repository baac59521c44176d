"""How an agent is isolated on its instance, by kind of instance."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Protocol


class Isolation(Protocol):
    """The isolation of one kind. The supervisor constructs it once per run. The constructor raises OSError if this
    machine does not support the kind.

    reusable:    whether an agent can run several steps, one after another. If not, its isolation ends with its process.
    own_network: whether each instance has its own network
    """

    @property
    def reusable(self) -> bool: ...

    @property
    def own_network(self) -> bool: ...

    def fork(self, index: int, address: str) -> int:
        """Fork an agent for the instance of that index. Return its process id, or 0 in the agent.

        Raise OSError, in the supervisor only, if the fork fails.
        """

    def prepare(self, index: int) -> None:
        """Do what does not depend on the step. Called in the agent before it gets a step. Raise OSError on failure."""

    def enter(self, instance: dict[str, Any]) -> None:
        """Isolate this process as the step's instance. Called in the agent. Raise OSError on failure."""


def find(name: str) -> type[Isolation]:
    """Return the class of ``MODULE:CLASS``, which a kind of instances names in its `isolation`."""
    module, _, member = name.partition(":")
    isolation: type[Isolation] = getattr(import_module(module), member)
    return isolation
