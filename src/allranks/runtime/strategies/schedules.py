"""Learning rate schedules by torch's own classes."""

from __future__ import annotations

from torch import optim
from torch.optim.lr_scheduler import LRScheduler, ReduceLROnPlateau

from allranks.errors import InputError, Problem
from allranks.runtime.strategies.training import Schedule


def create_schedule(schedule: Schedule | None, optimizer: optim.Optimizer) -> LRScheduler | None:
    """Return the schedule of an optimizer, or None without one.

    Raise InputError if it is no function, or does not return one of torch's schedulers that count steps.
    """
    if schedule is None:
        return None
    if not callable(schedule):
        raise _refused(f"a {type(schedule).__qualname__}")
    created: object = schedule(optimizer)
    if isinstance(created, ReduceLROnPlateau) or not isinstance(created, LRScheduler):
        raise _refused(f"a function that returns a {type(created).__qualname__}")
    return created


def _refused(found: str) -> InputError:
    return InputError(
        Problem(
            where="schedule",
            found=found,
            expected="a function that takes the optimizer, and returns a scheduler that needs no metric",
            fix="use for example: lambda optimizer: CosineAnnealingLR(optimizer, steps)",
        )
    )
