"""No distribution: the command runs once on each instance, and the processes know nothing of each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from allranks.contract import instance
from allranks.contract.launch import Distribution, Launch, Process, workers
from allranks.contract.layout import Layout, at_least_one
from allranks.contract.rank_env import RankEnv
from allranks.errors import Problem


@dataclass(frozen=True)
class Single(Distribution):
    """A job without a distribution. It has no settings."""

    type: ClassVar[str] = "none"


def problems(settings: Single, instance_count: int) -> tuple[Problem, ...]:  # noqa: ARG001
    """Return what cannot work, by key."""
    return at_least_one({"resources.instance_count": instance_count})


def processes(settings: Single, instance_count: int) -> tuple[Process, ...]:  # noqa: ARG001
    """One process an instance, numbered so that each has a log of its own, though to itself each is rank 0 of 1."""
    return workers(Layout(instance_count))


def environment(settings: Single, launch: Launch, process: Process) -> dict[str, str]:  # noqa: ARG001
    """Nothing beyond what every instance is given."""
    return {}


def read(environ: Mapping[str, str]) -> RankEnv:
    """Rank 0 of 1, on the instance that Azure ML names. Raise InputError if that contradicts itself."""
    instance_rank, instance_count = instance.read(environ) or (0, 1)
    return RankEnv(instance_rank=instance_rank, instance_count=instance_count)
