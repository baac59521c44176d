"""What the Azure size that a step names would make of it.

On this machine the step runs all the same, so these are warnings. A size that the table does not have, such as one
without GPUs, is not warned of.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from allranks.errors import Problem
from allranks.hardware import shared_memory, sizes, traps
from allranks.plan.check.scope import Scope
from allranks.plan.graph import Step


def of_step(scope: Scope, step: Step, today: date) -> Iterator[Problem]:
    """Yield the traps of each size that may be taken, by the step and the key."""
    # A step may name several: "A or B".
    for name in filter(None, step.instance_type.split(" or ")):
        size = sizes.known(name)
        for warning in () if size is None else _of_size(step, size, today):
            yield Problem(scope.key(step, warning.where), warning.found, warning.expected, warning.fix)


def _of_size(step: Step, size: sizes.Size, today: date) -> Iterator[Problem]:
    wanted = traps.asks_for_infiniband({name: str(value) for name, value in step.environment_variables.items()})
    yield from traps.of_size(size, today, wants_infiniband=wanted)
    # Where the platform starts a process for each rank; what starts the ranks itself decides by itself.
    processes = getattr(step.distribution, "process_count_per_instance", None)
    if processes is not None:
        yield from traps.of_processes(size, processes)
        too_small = shared_memory.problem(step.shm_size, processes, gpus=True)
        if too_small is not None:
            yield too_small
