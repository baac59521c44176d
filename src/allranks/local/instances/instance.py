"""An emulated instance, and the interface of a kind of instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Instance:
    """One emulated instance of a step.

    index: number of the instance within the run. Steps that run at the same time have different indexes.
    """

    index: int
    address: str
    hostname: str


class InstanceKind(Protocol):
    """What the engine needs to know about a kind of instance. How a process is isolated is in the kind's
    `isolation`."""

    name: str

    isolation: str
    """The supervisor's part, as ``MODULE:CLASS``. The module imports the standard library only."""

    interface: str
    """The network interface that connects the instances."""

    isolated: bool
    """Whether each instance has its own ports, hostname, mounts and /tmp."""

    def instances(self, indexes: Sequence[int]) -> tuple[Instance, ...]:
        """Return the instances of a step with these indexes. The first one is the master."""

    def master_port(self, master: Instance) -> int:
        """Return a free port on the master."""

    def ports(self, count: int) -> tuple[int, ...]:
        """Return `count` different free ports if the instances share ports, and none if each instance has its own."""

    def environment(self) -> Mapping[str, str]:
        """Return variables that a process needs on these instances and that Azure ML does not set."""
