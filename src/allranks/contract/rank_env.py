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
    launcher:                      the launcher: pytorch, mpi, tensorflow, ray, torchrun, slurm or none
    role:                          "worker", or one of TensorFlow's other roles: "chief", "ps", "evaluator"
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
            raise InputError(
                Problem(
                    where=f"rank {self.rank} of {self.world_size} (launcher {self.launcher})",
                    found="no master address",
                    expected="MASTER_ADDR: the address of the instance that rank 0 runs on",
                    fix="set MASTER_ADDR, and MASTER_PORT if the port is not 6105",
                )
            )
        return self.master_addr, self.master_port


def checked(
    env: RankEnv,
    *,
    rank: str,
    world_size: str,
    local_rank: str,
    local_world_size: str,
    instance_rank: str,
    instance_count: str,
) -> RankEnv:
    """Return `env` if its numbers are consistent. The other arguments name the variables that the numbers come from.

    Raise InputError for the first two numbers that contradict each other.
    """
    pairs = (
        (rank, env.rank, world_size, env.world_size),
        (local_rank, env.local_rank, local_world_size, env.local_world_size),
        (instance_rank, env.instance_rank, instance_count, env.instance_count),
        (local_world_size, env.local_world_size - 1, world_size, env.world_size),
        (instance_count, env.instance_count - 1, world_size, env.world_size),
    )
    for name, value, limit_name, limit in pairs:
        if value >= limit:
            is_count = name in (local_world_size, instance_count)
            found = f"{value + is_count}, with {limit_name} {limit}"
            raise variables.wrong(name, found, f"{'at most' if is_count else 'less than'} {limit_name}")
    return env
