"""The rank and layout of a process, read from its environment."""

from __future__ import annotations

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


def checked(
    env: RankEnv, rank: tuple[str, str], local_rank: tuple[str, str], instance_rank: tuple[str, str]
) -> RankEnv:
    """Return `env` if its numbers are consistent. The arguments name the variables of each number and of its count.

    Raise InputError for the first two numbers that contradict each other.
    """
    ranks, local_ranks, instances = rank[1], local_rank[1], instance_rank[1]
    numbers = (
        (*rank, env.rank, env.world_size),
        (*local_rank, env.local_rank, env.local_world_size),
        (*instance_rank, env.instance_rank, env.instance_count),
    )
    for name, limit_name, value, limit in numbers:
        if value >= limit:
            raise variables.wrong(name, f"{value}, with {limit_name} {limit}", f"less than {limit_name}")
    for name, value in ((local_ranks, env.local_world_size), (instances, env.instance_count)):
        if value > env.world_size:
            raise variables.wrong(name, f"{value}, with {ranks} {env.world_size}", f"at most {ranks}")
    return env
