"""The LightningModule: an image classifier."""

import argparse
from typing import Any

import lightning
import torch
from torch import Tensor, nn
from torch.nn import functional
from torchmetrics.classification import MulticlassAccuracy

from allranks_steps.images.classifier import ImageClassifier
from allranks_steps.schedule import Schedule

NO_LABEL = -1
"""Label of an image that fills a batch and is not counted."""


class ImageClassification(lightning.LightningModule):  # type: ignore[misc]  # its types are not read
    """Trains a classifier with cross-entropy.

    classifier: from pixels (batch, channels, height, width) uint8 to scores (batch, classes)
    args:       have learning_rate, weight_decay and label_smoothing_factor
    """

    def __init__(
        self, classifier: ImageClassifier, class_count: int, args: argparse.Namespace, schedule: Schedule
    ) -> None:
        super().__init__()
        self.classifier, self._args, self._schedule = classifier, args, schedule
        self.accuracy = MulticlassAccuracy(class_count, average="micro", ignore_index=NO_LABEL)

    def forward(self, pixels: Tensor) -> Tensor:
        scores: Tensor = self.classifier(pixels)
        return scores

    def training_step(self, batch: tuple[Tensor, Tensor], _index: int) -> Tensor:
        pixels, labels = batch
        return functional.cross_entropy(self(pixels), labels, label_smoothing=self._args.label_smoothing_factor)

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
        groups = [
            {"params": parameters, "weight_decay": self._args.weight_decay if decay else 0.0}
            for decay, parameters in decayed.items()
            if parameters
        ]
        optimizer = torch.optim.AdamW(groups, lr=self._args.learning_rate)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": self._schedule(optimizer), "interval": "step"},
        }


def decays(name: str) -> bool:
    """Return whether the weights of this name decay: all but biases and those of normalization."""
    lowered = name.lower()
    return not (lowered.endswith("bias") or "norm" in lowered)
