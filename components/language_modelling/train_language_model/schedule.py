"""Learning rate schedules with warm-up."""

from __future__ import annotations

import math
from collections.abc import Callable

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR

SCHEDULES = ("linear", "cosine", "constant", "constant_with_warmup")


def schedule(name: str, warmup_steps: int, total_steps: int, min_lr_ratio: float) -> Callable[[Optimizer], LambdaLR]:
    """Return a function that creates the schedule of an optimizer.

    name:         linear and cosine: linear warm-up, then decay to min_lr_ratio of the peak at the last step;
                  constant_with_warmup: linear warm-up, then the peak; constant: the peak
    warmup_steps: steps until the peak is reached
    """

    def factor(step: int) -> float:
        if name == "constant":
            return 1.0
        if step < warmup_steps:
            return (step + 1) / (warmup_steps + 1)
        if name == "constant_with_warmup":
            return 1.0
        progress = min(1.0, (step - warmup_steps) / max(1, total_steps - warmup_steps))
        remaining = 1 - progress if name == "linear" else (1 + math.cos(math.pi * progress)) / 2
        return min_lr_ratio + (1 - min_lr_ratio) * remaining

    return lambda optimizer: LambdaLR(optimizer, factor)
