"""One distributed job as the platform starts it: which processes there are, and what each is given."""

from __future__ import annotations

from dataclasses import dataclass

from allranks.contract import instance
from allranks.contract.distributions import DISTRIBUTIONS, Distribution
from allranks.contract.master import MASTER_PORT
from allranks.contract.process import Process

__all__ = ["MASTER_PORT", "Launch", "Process", "environment", "processes"]


@dataclass(frozen=True)
class Launch:
    """One distributed job on its instances, before any process is started.

    addresses:   the IP address of each instance; the first is the master
    hostnames:   the name of each instance, as many as addresses
    master_port: a free port on the first instance
    ports:       a port for each process, where instances share their ports; without, the documented ones are free

    Raises ValueError where there is no instance, or not one hostname for each address.
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


def processes(launch: Launch) -> tuple[Process, ...]:
    """What the platform starts, in the order of the ranks. Under per-node launch that is one process an instance."""
    kind = DISTRIBUTIONS[launch.distribution.type]
    return kind.module.processes(launch.distribution, launch.instance_count)


def environment(launch: Launch, process: Process) -> dict[str, str]:
    """The variables that tell a process its place: those of its instance, and those of the distribution.

    What the job adds to them (who it is, its inputs and outputs) is `allranks.contract.job.environment`.
    """
    kind = DISTRIBUTIONS[launch.distribution.type]
    return instance.environment(launch, process) | kind.module.environment(launch.distribution, launch, process)
