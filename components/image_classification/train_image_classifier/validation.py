"""Score the model that is being trained on the validation images, and save the score with its checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

from allranks import runtime
from allranks_steps.history import History

MODE = "max"
"""The best checkpoint is the one with the highest metric, the validation accuracy."""


@dataclass
class Validation:
    """The validations of a training. Each is logged, and its accuracy is the metric of its step's checkpoint.

    loader:    of the validation images; None if there are none
    average:   the averaged weights, which are validated instead of the model's; None without
    history:   is paused meanwhile
    total:     number of steps of the training
    evaluated: the step of the last validation; None before the first one
    """

    loader: runtime.DataLoader | None
    training: runtime.Training
    average: runtime.ExponentialMovingAverage | None
    checkpoints: runtime.Checkpoints
    history: History
    ranks: runtime.Ranks
    total: int
    evaluated: int | None = None

    def run(self, step: int, epoch: int) -> None:
        """Validate the model of a step, unless it has been validated. A collective.

        Raise Evicted if the ranks are asked to end meanwhile. The next attempt repeats the validation."""
        if self.loader is None or step == self.evaluated:
            return
        with self.history.paused():
            with self.average.averaged() if self.average else nullcontext():
                figures = validate(self.training.model, self.loader, self.ranks, self.checkpoints.interrupted)
            if figures is None:
                self.checkpoints.save_if_due(step)  # saves and raises Evicted
                return
            self.checkpoints.save(step, metric=figures["accuracy"], wait=False)
        self.evaluated = step
        named = {f"validation_{name}": value for name, value in figures.items()}
        self.ranks.metrics.log(named, step=step, total=self.total, epoch=epoch)
        if self.ranks.is_main:
            print(f"step {step} of {self.total}: validation accuracy {figures['accuracy']:.4f}", flush=True)


@torch.no_grad()
def validate(
    model: nn.Module, loader: runtime.DataLoader, ranks: runtime.Ranks, interrupted: Callable[[], bool]
) -> dict[str, float] | None:
    """Return loss, accuracy and top5_accuracy, each image counted once. A collective.

    interrupted: whether to stop, asked before each batch; the result is then None

    The ranks of a sharded model communicate in every forward pass, so all make the same number of passes.
    """
    model.eval()
    totals = torch.zeros(4, dtype=torch.float64, device=ranks.device)  # images, loss, correct, correct among five
    try:
        for batch in loader:
            if interrupted():
                return None
            scores = model(batch.pixels)
            if loader.weight == 0:
                continue
            best = scores.topk(min(5, scores.shape[1]), dim=1).indices == batch.labels.unsqueeze(1)
            loss = functional.cross_entropy(scores, batch.labels, reduction="sum")
            count = torch.tensor(float(len(batch.labels)), device=ranks.device)
            totals += torch.stack([count, loss.float(), best[:, 0].sum(), best.any(dim=1).sum()])
    finally:
        model.train()
    count, *sums = ranks.reduce(totals).tolist()
    return dict(zip(("loss", "accuracy", "top5_accuracy"), (value / count for value in sums), strict=True))
