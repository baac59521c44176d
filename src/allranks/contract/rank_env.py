"""A process's place in its job, as its environment tells it."""

from __future__ import annotations

from dataclasses import dataclass

from allranks.contract import variables


@dataclass(frozen=True)
class RankEnv:
    """Where a process stands in its job. With no arguments: a process on its own.

    rank, world_size:              its number among all processes of the job, and how many there are
    local_rank, local_world_size:  its number among those of its instance, and how many there are
    instance_rank, instance_count: its instance's number, and how many instances there are
    master_addr:                   the address of rank 0; None where no variable names it, or there is no other rank
    master_port:                   the port there at which the ranks meet; None without a launcher
    launcher:                      what started it: pytorch, mpi, tensorflow, ray, torchrun, slurm or none
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
    """Return the same place if its numbers agree. The texts name the variables that the numbers were read from.

    Raise InputError for the first two that contradict each other.
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
            found = f"found {value + is_count}, with {limit_name} {limit}"
            raise variables.wrong(name, found, f"{'at most' if is_count else 'less than'} {limit_name}")
    return env
