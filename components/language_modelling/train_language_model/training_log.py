"""Log the figures of a training: to its history, its metrics and its output."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from allranks import runtime
from allranks_steps.history import History, peak_memory


@dataclass(frozen=True)
class TrainingLog:
    """Log the steps of a training. Every rank must make the same calls.

    total: number of steps of the whole training
    utilization_of_token: minimum device-seconds per token over all devices; None if unknown
    """

    ranks: runtime.Ranks
    history: History
    total: int
    utilization_of_token: float | None

    def add(self, step: int, loss: Tensor, training: runtime.Training) -> None:
        """Log a step. loss: this rank's mean over the step"""
        mean = float(self.ranks.mean(loss))  # waits until the device has computed it
        point = self.history.add(step, mean, float(self.ranks.reduce(peak_memory(self.ranks.device), "max")))
        tokens_per_second = point.samples / point.seconds
        values = {
            "train_loss": mean,
            "learning_rate": training.optimizer.param_groups[0]["lr"],
            "tokens_per_second": tokens_per_second,
            "step_seconds": point.seconds,
            "peak_memory_mib": point.peak_memory,
        }
        if training.gradient_norm is not None:
            values["gradient_norm"] = float(training.gradient_norm)
        if self.utilization_of_token is not None:
            values["mfu"] = tokens_per_second * self.utilization_of_token
        self._log(step, values, f"loss {mean:.4f}, {point.seconds:.3f} s a step")

    def add_evaluation(self, step: int, loss: float) -> None:
        """Log the loss over the validation tokens."""
        self.history.add_evaluation(step, loss)
        self._log(step, {"validation_loss": loss}, f"validation loss {loss:.4f}")

    def _log(self, step: int, values: dict[str, float], text: str) -> None:
        self.ranks.metrics.log(values, step=step, total=self.total)
        if self.ranks.is_main:
            print(f"step {step} of {self.total}: {text}", flush=True)
