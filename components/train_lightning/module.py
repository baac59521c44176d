"""The LightningModule, and the callback that logs its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import lightning
import torch
from torch import Tensor, nn
from torch.nn import functional

from allranks.runtime import Metrics


class ImageClassification(lightning.LightningModule):
    """An image classifier trained with cross-entropy.

    classifier: maps pixels (batch, channels, height, width), 0 to 255, to scores (batch, classes)
    """

    def __init__(self, classifier: nn.Module, learning_rate: float) -> None:
        super().__init__()
        self.classifier = classifier
        self.learning_rate = learning_rate

    def training_step(self, batch: tuple[Tensor, Tensor], _index: int) -> Tensor:
        pixels, labels = batch
        return functional.cross_entropy(self.classifier(pixels), labels)

    def validation_step(self, batch: tuple[Tensor, Tensor], _index: int) -> None:
        pixels, labels = batch
        correct = (self.classifier(pixels).argmax(dim=1) == labels).float().mean()
        self.log("validation_accuracy", correct, sync_dist=True, batch_size=len(labels))

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=self.learning_rate)


class Figures(lightning.Callback):
    """Logs the loss, averaged over the ranks, every `every_steps` steps and at the end, and each epoch's accuracy."""

    def __init__(self, every_steps: int) -> None:
        self._every_steps = every_steps
        self._metrics: Metrics | None = None

    def on_fit_start(self, trainer: lightning.Trainer, _module: lightning.LightningModule) -> None:
        self._metrics = Metrics(is_main=trainer.is_global_zero)

    def on_train_batch_end(
        self, trainer: lightning.Trainer, _module: Any, outputs: Mapping[str, Tensor], _batch: Any, _index: int
    ) -> None:
        step, total = trainer.global_step, int(trainer.estimated_stepping_batches)
        if step % self._every_steps == 0 or step == total:
            loss = trainer.strategy.reduce(outputs["loss"].detach().clone(), reduce_op="mean")
            self._log(trainer, {"train_loss": float(loss)})

    def on_validation_epoch_end(self, trainer: lightning.Trainer, _module: lightning.LightningModule) -> None:
        self._log(trainer, {name: float(value) for name, value in trainer.callback_metrics.items()})

    def close(self, status: str) -> None:
        """Send the remaining metrics, with an MLflow status for the run."""
        if self._metrics:
            self._metrics.close(status)

    def _log(self, trainer: lightning.Trainer, values: Mapping[str, float]) -> None:
        if self._metrics:
            total = int(trainer.estimated_stepping_batches)
            self._metrics.log(values, step=trainer.global_step, total=total, epoch=trainer.current_epoch)
