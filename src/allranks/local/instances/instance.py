"""An emulated machine, and what sets one kind of them apart from another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True)
class Instance:
    """One emulated machine of a step.

    index: which of the run's machines it is; two steps at the same time never have the same
    """

    index: int
    address: str
    hostname: str


class InstanceKind(Protocol):
    """What the engine must know of a kind; how a process gets onto such a machine is the supervisor's matter."""

    name: str

    interface: str
    """The network interface by which instances reach each other."""

    isolated: bool
    """Whether each instance has ports, hostname, mounts and /tmp of its own."""

    def instances(self, indexes: Sequence[int]) -> tuple[Instance, ...]:
        """Return the instances of a step, the first of which is the master, on these of the run's machines."""

    def master_port(self, master: Instance) -> int:
        """Return a port that is free on the master."""

    def ports(self, count: int) -> tuple[int, ...]:
        """So many free ports, all different, where the instances share ports; none where each has all its own."""

    def environment(self) -> Mapping[str, str]:
        """Variables that a process needs here although Azure ML would not set them."""
