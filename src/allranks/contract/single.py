"""No distribution: the command runs once on each instance, and the processes are independent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from allranks.contract.launch import Distribution, Launch, Process, count_problems, equal_processes, read_instance
from allranks.contract.rank_env import RankEnv


@dataclass(frozen=True)
class Single(Distribution):
    """A job without a distribution. It has no settings."""

    type: ClassVar[str] = "none"


problems = count_problems
processes = equal_processes
"""One process per instance. The numbers determine the names of the logs; each process itself is rank 0 of 1."""


def environment(settings: Single, launch: Launch, process: Process) -> dict[str, str]:  # noqa: ARG001
    """Return {}: the variables of the instance are sufficient."""
    return {}


def read(environ: Mapping[str, str]) -> RankEnv:
    """Return rank 0 of 1, on Azure ML's instance. Raise InputError if its variables contradict each other."""
    instance_rank, instance_count = read_instance(environ) or (0, 1)
    return RankEnv(instance_rank=instance_rank, instance_count=instance_count)
