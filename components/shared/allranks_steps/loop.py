"""The training loop: steps, logging, evaluations and checkpoints."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from allranks import runtime
from allranks_steps.history import History, peak_memory


@dataclass
class Loop:
    """A training with evaluations, each of which makes a checkpoint. Every rank must make the same calls.

    total:            number of steps of the whole training
    samples_per_step: over all ranks
    logging_steps:    steps between two logged points
    loss:             returns the loss of a batch in a step and in one of its passes, both from 0
    is_due:           returns whether an evaluation is due after a step
    evaluate:         returns the metrics on held-out data, or None if `checkpoints.interrupted` ended it. A collective
    metric:           metric to print, and to compare checkpoints by
    average:          averaged weights, which are evaluated instead of the model's
    utilization:      minimum seconds per sample on all devices together; None if unknown
    """

    ranks: runtime.Ranks
    training: runtime.Training
    loader: runtime.DataLoader
    history: History
    checkpoints: runtime.Checkpoints
    total: int
    samples_per_step: int
    logging_steps: int
    loss: Callable[[Any, int, int], Tensor]
    is_due: Callable[[int], bool]
    evaluate: Callable[[], dict[str, float] | None]
    metric: str
    average: runtime.ExponentialMovingAverage | None = None
    utilization: float | None = None

    def run(self, step: int) -> None:
        """Train from a step to the last one, and save. Raise Evicted after a checkpoint if a rank is evicted."""
        total, passes = torch.zeros((), device=self.ranks.device), 0
        self.training.model.train()
        self.history.restart()
        self._evaluate(step)  # if an earlier attempt ended during this evaluation
        while step < self.total:
            for batch in self.loader:
                loss = self.loss(batch, step, passes)
                self.training.backward(loss, self.loader.weight)
                total += loss.detach() * self.loader.weight
                passes += 1
                if not self.training.step():
                    continue
                step += 1
                if self.average:
                    self.average.update()
                self.history.count(self.samples_per_step)
                if step == 1 or step % self.logging_steps == 0 or step == self.total:
                    self._log(step, float(self.ranks.mean(total / passes)))
                total, passes = torch.zeros_like(total), 0
                self._evaluate(step)
                with self.history.paused():
                    self.checkpoints.save_if_due(step)
                if step == self.total:
                    break
        self.checkpoints.save(step)

    def _log(self, step: int, loss: float) -> None:
        peak = float(self.ranks.reduce(peak_memory(self.ranks.device), "max"))
        point = self.history.add(step, loss, peak)
        rate = point.samples / point.seconds
        values = {
            "train_loss": loss,
            "learning_rate": self.training.optimizer.param_groups[0]["lr"],
            f"{self.history.sample}s_per_second": rate,
            "step_seconds": point.seconds,
            "peak_memory_mib": peak,
        }
        if self.training.gradient_norm is not None:
            values["gradient_norm"] = float(self.training.gradient_norm)
        if self.utilization is not None:
            values["mfu"] = rate * self.utilization
        self._report(step, values, f"loss {loss:.4f}, {point.seconds:.3f} s a step")

    def _evaluate(self, step: int) -> None:
        if not step or not self.is_due(step) or self.history.has_evaluation(step):
            return
        if self.ranks.device.type == "cuda":  # the steps before it may still be computed
            torch.cuda.synchronize(self.ranks.device)
        with self.history.paused():
            with self.average.averaged() if self.average else nullcontext():
                found = self.evaluate()
            if found is None:
                self.checkpoints.save_if_due(step)  # saves, and raises Evicted
                return
            self.history.add_evaluation(step, found["loss"])
            self.checkpoints.save(step, metric=found[self.metric], wait=False)
        values = {f"validation_{name}": value for name, value in found.items()}
        self._report(step, values, f"validation {self.metric} {found[self.metric]:.4f}")

    def _report(self, step: int, values: dict[str, float], text: str) -> None:
        self.ranks.metrics.log(values, step=step, total=self.total, epoch=self.loader.epoch)
        if self.ranks.is_main:
            print(f"step {step} of {self.total}: {text}", flush=True)
