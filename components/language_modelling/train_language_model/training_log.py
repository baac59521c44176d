"""Log the figures of a training: to its metrics, its history and its output."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from history import Evaluation, History, Point
from torch import Tensor

from allranks import runtime


class TrainingLog:
    """Log the steps of a training. Every rank must make the same calls.

    total:           number of steps of the whole training
    tokens_per_step: over all ranks
    utilization_of_token: share of a second of all devices that a token needs at least; None if it is not known
    """

    def __init__(
        self,
        ranks: runtime.Ranks,
        history: History,
        *,
        total: int,
        tokens_per_step: int,
        utilization_of_token: float | None,
    ) -> None:
        self._ranks, self._history, self._total = ranks, history, total
        self._tokens_per_step, self._utilization_of_token = tokens_per_step, utilization_of_token
        self._logged_step, self._logged_at = 0, 0.0

    def start(self, step: int) -> None:
        """Start the clock. step: number of steps so far"""
        self._logged_step, self._logged_at = step, time.perf_counter()

    def add(self, step: int, loss: Tensor, training: runtime.Training) -> None:
        """Log a step. loss: this rank's mean over the step"""
        mean = float(self._ranks.mean(loss))  # waits until the device has computed it
        now = time.perf_counter()
        seconds = (now - self._logged_at) / (step - self._logged_step)
        self._logged_step, self._logged_at = step, now
        point = Point(step, mean, seconds, self._peak_memory())
        self._history.add(point)
        rate = training.optimizer.param_groups[0]["lr"]
        values = {
            "train_loss": mean,
            "learning_rate": rate,
            "tokens_per_second": self._tokens_per_step / seconds,
            "step_seconds": seconds,
            "peak_memory_mib": point.peak_memory,
        }
        if training.gradient_norm is not None:
            values["gradient_norm"] = float(training.gradient_norm)
        if self._utilization_of_token is not None:
            values["mfu"] = self._tokens_per_step / seconds * self._utilization_of_token
        self._ranks.metrics.log(values, step=step, total=self._total)
        if self._ranks.is_main:
            print(f"step {step} of {self._total}: loss {mean:.4f}, {seconds:.3f} s a step", flush=True)

    def add_evaluation(self, step: int, loss: float) -> None:
        """Log the loss over the validation tokens."""
        self._history.add_evaluation(Evaluation(step, loss))
        self._ranks.metrics.log({"validation_loss": loss}, step=step, total=self._total)
        if self._ranks.is_main:
            print(f"step {step} of {self._total}: validation loss {loss:.4f}", flush=True)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Context manager whose block does not count as time of a step."""
        if self._ranks.device.type == "cuda":  # the steps before it may still be computed
            torch.cuda.synchronize(self._ranks.device)
        began = time.perf_counter()
        yield
        self._logged_at += time.perf_counter() - began

    def _peak_memory(self) -> float:
        """Return the highest rank's peak memory in MiB: allocated on its GPU, or of its CPU process. A collective."""
        if self._ranks.device.type == "cuda":
            own = torch.cuda.max_memory_allocated(self._ranks.device) / 2**20
        else:
            own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
        return float(self._ranks.reduce(own, "max"))
