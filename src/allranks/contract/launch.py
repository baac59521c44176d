"""A distributed job before its processes start, as plain data: its distribution, its instances, its processes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from allranks.contract.layout import Layout
from allranks.contract.master import MASTER_PORT


@dataclass(frozen=True)
class Distribution:
    """The settings of a job's distribution. Each type is a subclass with its own module.

    type: the name of the type in a specification, in lower case
    """

    type: ClassVar[str]


@dataclass(frozen=True)
class Process:
    """A process that the platform starts.

    rank:          its number among all processes that the platform starts, from 0
    local_rank:    its number within its instance
    instance_rank: the number of its instance
    role:          "worker", or "ps" under TensorFlow
    """

    rank: int
    local_rank: int
    instance_rank: int
    role: str = "worker"


@dataclass(frozen=True)
class Launch:
    """One distributed job on its instances.

    addresses:   the IP address of each instance; the first is the master
    hostnames:   the name of each instance, as many as addresses
    master_port: a free port on the first instance
    ports:       a port for each process if the instances share their ports; if empty, the documented ports are used

    The constructor raises ValueError if there is no instance, or not one hostname for each address.
    """

    distribution: Distribution
    addresses: tuple[str, ...]
    hostnames: tuple[str, ...]
    master_port: int = MASTER_PORT
    ports: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.addresses:
            raise ValueError("a launch needs at least one instance")
        if len(self.addresses) != len(self.hostnames):
            raise ValueError(f"{len(self.addresses)} addresses, but {len(self.hostnames)} hostnames")

    @property
    def instance_count(self) -> int:
        return len(self.addresses)


def workers(layout: Layout) -> tuple[Process, ...]:
    """Return the processes of a layout in the order of their ranks."""
    return tuple(
        Process(rank, layout.local_rank(rank), layout.instance_rank(rank)) for rank in range(layout.world_size)
    )
