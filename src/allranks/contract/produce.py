"""The contract's producing side: the processes that the platform starts, and the variables that place each of them."""

from __future__ import annotations

from allranks.contract import instance
from allranks.contract.distributions import DISTRIBUTIONS, Module
from allranks.contract.launch import Distribution, Launch, Process
from allranks.errors import Problem


def problems(distribution: Distribution, instance_count: int) -> tuple[Problem, ...]:
    """Return what cannot work of these settings on so many instances. `where` is a key: distribution.worker_count."""
    return _module(distribution).problems(distribution, instance_count)


def processes(launch: Launch) -> tuple[Process, ...]:
    """Return what the platform starts, in the order of the ranks. Under per-node launch that is one process an
    instance.

    Raise ValueError if a count is impossible (see `problems`).
    """
    return _module(launch.distribution).processes(launch.distribution, launch.instance_count)


def environment(launch: Launch, process: Process) -> dict[str, str]:
    """Return the variables that place a process: those of its instance, and those of the distribution.

    What the job adds to them (who it is, its inputs and outputs) is `allranks.contract.job.environment`.
    """
    distribution = launch.distribution
    return instance.environment(launch, process) | _module(distribution).environment(distribution, launch, process)


def _module(distribution: Distribution) -> Module:
    return DISTRIBUTIONS[distribution.type].module
