"""No distribution: the command runs once on each instance, and the processes are independent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from allranks.contract.launch import Distribution, read_instance
from allranks.contract.rank_env import RankEnv


@dataclass(frozen=True)
class Single(Distribution):
    """A job without a distribution, which has one process per instance. It has no settings, and the variables of the
    instance are sufficient. The numbers of the processes determine the names of the logs; each process itself is rank 0
    of 1."""

    type: ClassVar[str] = "none"


def read(environ: Mapping[str, str]) -> RankEnv:
    """Return rank 0 of 1, on Azure ML's instance. Raise InputError if its variables contradict each other."""
    instance_rank, instance_count = read_instance(environ) or (0, 1)
    return RankEnv(instance_rank=instance_rank, instance_count=instance_count)
