"""The LightningModule: an image classifier."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import lightning
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from torchmetrics.classification import MulticlassAccuracy

from allranks_steps.images.classifier import ImageClassifier

NO_LABEL = -1
"""Label of an image that fills a batch and does not count."""


@dataclass(frozen=True)
class Optimization:
    """How the weights are trained. schedule: makes the learning rate schedule of an optimizer"""

    learning_rate: float
    weight_decay: float
    label_smoothing_factor: float
    schedule: Callable[[Optimizer], LRScheduler]


class ImageClassification(lightning.LightningModule):
    """Trains a classifier with cross-entropy.

    classifier: from pixels (batch, channels, height, width) uint8 to scores (batch, classes)
    """

    def __init__(self, classifier: ImageClassifier, class_count: int, optimization: Optimization) -> None:
        super().__init__()
        self.classifier = classifier
        self.optimization = optimization
        self.accuracy = MulticlassAccuracy(class_count, average="micro", ignore_index=NO_LABEL)

    def forward(self, pixels: Tensor) -> Tensor:
        scores: Tensor = self.classifier(pixels)
        return scores

    def training_step(self, batch: tuple[Tensor, Tensor], _index: int) -> Tensor:
        pixels, labels = batch
        return functional.cross_entropy(self(pixels), labels, label_smoothing=self.optimization.label_smoothing_factor)

    def validation_step(self, batch: tuple[Tensor, Tensor], _index: int) -> None:
        pixels, labels = batch
        self.accuracy(self(pixels), labels)
        # The metric adds up over the ranks, so that every image counts once.
        self.log("validation_accuracy", self.accuracy, on_step=False, on_epoch=True)

    def configure_optimizers(self) -> Any:
        # FSDP has replaced the parameters by now, and kept their names.
        decayed: dict[bool, list[nn.Parameter]] = {True: [], False: []}
        for name, parameter in self.trainer.model.named_parameters():
            decayed[decays(name)].append(parameter)
        groups = [{"params": decayed[True]}, {"params": decayed[False], "weight_decay": 0.0}]
        groups = [group for group in groups if group["params"]]
        optimizer = torch.optim.AdamW(
            groups, lr=self.optimization.learning_rate, weight_decay=self.optimization.weight_decay
        )
        scheduler = {"scheduler": self.optimization.schedule(optimizer), "interval": "step"}
        return {"optimizer": optimizer, "lr_scheduler": scheduler}


def decays(name: str) -> bool:
    """Return whether the weights of this name decay: all but biases and those of normalization."""
    lowered = name.lower()
    return not (lowered.endswith("bias") or "norm" in lowered)
