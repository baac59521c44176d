"""The rank and layout of a process, read from its environment."""

from collections.abc import Mapping
from dataclasses import dataclass

from allranks.contract import variables
from allranks.errors import InputError, Problem


@dataclass(frozen=True)
class RankEnv:
    """The rank of a process and the layout of its job. The defaults describe a single process.

    rank, world_size:              number of this process, and number of processes in the job
    local_rank, local_world_size:  the same within the instance
    instance_rank, instance_count: number of the instance, and number of instances
    master_addr:                   the address of rank 0; None if no variable contains it, or there is only one rank
    master_port:                   the port at that address to which the ranks connect; None without a launcher
    launcher:                      the launcher: pytorch, mpi, tensorflow, ray, torchrun or none
    role:                          "worker", or one of TensorFlow's other roles: "chief", "ps"
    """

    rank: int = 0
    local_rank: int = 0
    world_size: int = 1
    local_world_size: int = 1
    instance_rank: int = 0
    instance_count: int = 1
    master_addr: str | None = None
    master_port: int | None = None
    launcher: str = "none"
    role: str = "worker"

    def master(self) -> tuple[str, int]:
        """Return the master's address and port. Raise InputError if they are unknown."""
        if self.master_addr is None or self.master_port is None:
            where = f"rank {self.rank} of {self.world_size} (launcher {self.launcher})"
            expected = "MASTER_ADDR: the address of the instance that rank 0 runs on"
            fix = "set MASTER_ADDR, and MASTER_PORT if the port is not 6105"
            raise InputError(Problem(where, "no master address", expected, fix))
        return self.master_addr, self.master_port


@dataclass(frozen=True)
class Place:
    """An index of this process and the count that bounds it, each with the name of its variable."""

    name: str
    number: int
    count_name: str
    count: int


def read(environ: Mapping[str, str], launcher: str, rank: Place, local_rank: Place, instance: Place) -> RankEnv:
    """Return the rank and layout that a launcher has set, with the master's address and port.

    Raise InputError if numbers contradict each other, or the port is not valid.
    """
    for place in (rank, local_rank, instance):
        if place.number >= place.count:
            found = f"{place.number}, with {place.count_name} {place.count}"
            raise variables.wrong(place.name, found, f"less than {place.count_name}")
    for place in (local_rank, instance):
        if place.count > rank.count:
            found = f"{place.count}, with {rank.count_name} {rank.count}"
            raise variables.wrong(place.count_name, found, f"at most {rank.count_name}")
    return RankEnv(
        rank=rank.number,
        local_rank=local_rank.number,
        world_size=rank.count,
        local_world_size=local_rank.count,
        instance_rank=instance.number,
        instance_count=instance.count,
        master_addr=variables.master_address(environ, instance.count),
        master_port=variables.master_port(environ),
        launcher=launcher,
    )
