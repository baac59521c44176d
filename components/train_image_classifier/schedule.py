"""Learning rate schedules, by torch's own schedulers."""

from __future__ import annotations

from collections.abc import Callable

from torch.optim import Optimizer
from torch.optim.lr_scheduler import ConstantLR, CosineAnnealingLR, LinearLR, LRScheduler, SequentialLR

SCHEDULES = ("linear", "cosine", "constant", "constant_with_warmup")
"""Names of the schedules, as Transformers has them."""


def schedule(name: str, total: int, warmup_steps: int) -> Callable[[Optimizer], LRScheduler]:
    """Return a function that makes the schedule of an optimizer.

    total:        number of optimizer steps of the training
    warmup_steps: steps in which the learning rate rises linearly to its highest value; `constant` has none
    """
    warmup = 0 if name == "constant" else min(warmup_steps, total - 1)

    def make(optimizer: Optimizer) -> LRScheduler:
        after = _after(name, optimizer, total - warmup)
        if not warmup:
            return after
        # The first step is taken with a positive rate.
        rise = LinearLR(optimizer, start_factor=1 / (warmup + 1), end_factor=1.0, total_iters=warmup)
        return SequentialLR(optimizer, [rise, after], milestones=[warmup])

    return make


def _after(name: str, optimizer: Optimizer, steps: int) -> LRScheduler:
    if name == "linear":
        return LinearLR(optimizer, start_factor=1.0, end_factor=0.0, total_iters=steps)
    if name == "cosine":
        return CosineAnnealingLR(optimizer, T_max=steps)
    return ConstantLR(optimizer, factor=1.0, total_iters=0)
