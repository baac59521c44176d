"""Learning rate schedules, as factors of the highest rate, by torch's LambdaLR."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.optim import Optimizer
    from torch.optim.lr_scheduler import LambdaLR


@dataclass
class Schedule:
    """Create the learning rate schedule of an optimizer.

    name:         linear, cosine, constant or constant_with_warmup, as in Transformers
    total:        number of optimizer steps of the training. It may change when the training resumes.
    warmup_steps: steps in which the learning rate rises linearly to its highest value; `constant` has none
    min_lr_ratio: final factor of linear and cosine schedules
    """

    name: str
    total: int
    warmup_steps: int
    min_lr_ratio: float = 0.0

    def __call__(self, optimizer: Optimizer) -> LambdaLR:
        """Return the schedule. Its state contains the step, but not the total number of steps."""
        from torch.optim.lr_scheduler import LambdaLR  # TensorFlow's environment does not have torch

        return LambdaLR(optimizer, lambda step: self.factor(step))

    def factor(self, step: int) -> float:
        """Return the factor of the highest learning rate in a step, from 0."""
        warmup = 0 if self.name == "constant" else min(self.warmup_steps, self.total - 1)
        if step < warmup:
            return (step + 1) / (warmup + 1)  # the first step is taken with a positive rate
        if self.name.startswith("constant"):
            return 1.0
        progress = min(1.0, (step - warmup) / (self.total - warmup))
        decay = 1 - progress if self.name == "linear" else (1 + math.cos(math.pi * progress)) / 2
        return self.min_lr_ratio + (1 - self.min_lr_ratio) * decay
