"""The producing side of the contract: the processes that the platform starts, and the variables of each."""

from __future__ import annotations

from allranks.contract.distributions import DISTRIBUTIONS, Module
from allranks.contract.launch import Distribution, Launch, Process, instance_environment
from allranks.errors import Problem


def problems(distribution: Distribution, instance_count: int) -> tuple[Problem, ...]:
    """Return the problems of these settings. `where` is a key, such as distribution.worker_count."""
    return _module(distribution).problems(distribution, instance_count)


def processes(launch: Launch) -> tuple[Process, ...]:
    """Return the processes that the platform starts, in the order of the ranks. Under per-node launch, that is one
    process per instance.

    Raise ValueError if a count is impossible (see `problems`).
    """
    return _module(launch.distribution).processes(launch.distribution, launch.instance_count)


def environment(launch: Launch, process: Process) -> dict[str, str]:
    """Return the variables of a process that come from its instance and from the distribution.

    `allranks.contract.job.environment` adds those of the job.
    """
    distribution = launch.distribution
    return instance_environment(launch, process) | _module(distribution).environment(distribution, launch, process)


def _module(distribution: Distribution) -> Module:
    return DISTRIBUTIONS[distribution.type].module
