"""A process's place in its job, read from its environment whatever launcher started it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from allranks.contract import variables


@dataclass(frozen=True)
class RankEnv:
    """Where a process stands in its job. With no arguments: a process on its own.

    rank, world_size:              its number among all processes of the job, and how many there are
    local_rank, local_world_size:  its number among those of its instance, and how many there are
    instance_rank, instance_count: its instance's number, and how many instances there are
    master_addr:                   where rank 0 lives; None where nothing says it, or nobody is to be met
    master_port:                   the port there at which ranks meet, None with no master_addr
    launcher:                      who started it: pytorch, mpi, tensorflow, ray, torchrun, slurm or none
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

    @classmethod
    def detect(cls, environ: Mapping[str, str] = os.environ) -> RankEnv:
        """The place that the variables tell, by the innermost launcher that left its own.

        A process without a launcher is rank 0 of 1. Raises InputError where a launcher's variables are incomplete, not
        numbers, or contradict each other, or where a launcher within an Azure ML job was told of more instances than it
        has: a rank that guesses its place, or waits for ranks that nobody starts, hangs all the others.
        """
        # Here, since every launcher's module makes RankEnvs. The last one, of no launcher, always finds a place.
        from allranks.contract.distributions import LAUNCHERS

        env = next(env for read in LAUNCHERS if (env := read(environ)))
        count = variables.integer(environ, "AZUREML_NODE_COUNT", minimum=1, default=env.instance_count)
        if env.instance_count > count:
            raise variables.wrong(
                "AZUREML_NODE_COUNT",
                f"found {count}, with ranks on {env.instance_count} instances (launcher {env.launcher})",
                "no more instances than the step has",
                "set the step's resources.instance_count, or the hostfile or --nnodes of the launcher that it starts",
            )
        return env


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
    """The same place, once its numbers agree. The texts name the variables that each number came from.

    Raises InputError at the first two that contradict each other.
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
