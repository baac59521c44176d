"""How an agent is isolated on its instance, by kind of instance."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar, Protocol


class AgentIsolation(Protocol):
    """The part of an isolation that acts in the process that forks an agent, and in the agent.

    own_network: whether each instance has its own network
    """

    own_network: ClassVar[bool]

    def __init__(self, network: int | None) -> None:
        """network: the descriptor of the instance's network, of `Isolation.connect`"""

    def fork(self) -> int:
        """Fork an agent. Return its process id, or 0 in the agent. Raise OSError, in the parent only, if that fails."""

    def prepare(self) -> None:
        """Do what does not depend on the step. Called in the agent before it gets a step. Raise OSError on failure."""

    def enter(self, instance: dict[str, Any]) -> None:
        """Isolate this process as the step's instance, without anything of the step before. Called in the agent. Raise
        OSError on failure."""


class Isolation(Protocol):
    """The isolation of one kind. The supervisor constructs it once per run. The constructor raises OSError if this
    machine does not support the kind.

    agent: its part for an agent
    """

    agent: ClassVar[type[AgentIsolation]]

    def connect(self, index: int, address: str) -> int | None:
        """Return the descriptor of the network of the instance of that index, which exists until the run ends; None if
        the instances have no network of their own. Raise OSError on failure."""


def find(name: str) -> type[Isolation]:
    """Return the class of ``MODULE:CLASS``, which a kind of instances names in its `isolation`."""
    module, _, member = name.partition(":")
    isolation: type[Isolation] = getattr(import_module(module), member)
    return isolation
