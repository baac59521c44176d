"""Learning rate schedules by torch's own classes."""

from __future__ import annotations

from torch import optim
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from allranks.errors import InputError, Problem
from allranks.runtime.strategies.training import Schedule


def create_schedule(schedule: Schedule | None, optimizer: optim.Optimizer) -> LRScheduler | None:
    """Return the schedule of an optimizer, or None without one.

    Raise InputError if the function does not return one of torch's schedulers that count steps.
    """
    if schedule is None:
        return None
    created: object = schedule(optimizer)
    if isinstance(created, ReduceLROnPlateau) or not isinstance(created, LRScheduler):
        raise InputError(
            Problem(
                where="schedule",
                found=f"a function that returns a {type(created).__qualname__}",
                expected="one of torch.optim.lr_scheduler that needs no metric, on the optimizer that it is given",
                fix="use LambdaLR, CosineAnnealingLR, OneCycleLR, SequentialLR or another one of them",
            )
        )
    return created
