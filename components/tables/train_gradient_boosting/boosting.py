"""Evaluate, log, save, stop early, and stop for an eviction, after each iteration."""

import time
from argparse import Namespace
from collections.abc import Mapping
from typing import Any

import lightgbm
from checkpoints import Checkpoints, Progress
from numpy.typing import NDArray
from validation import HIGHER_IS_BETTER, LOSS, Validation

from allranks.runtime.clean_exit import Evicted, Eviction
from allranks.runtime.sockets import Ranks
from allranks_steps.history import peak_memory


class Boosting:
    """The state of a training between iterations. LightGBM calls `evaluate` and then `after_iteration`, on every rank.

    args:   the program's arguments
    metric: the metric that decides about early stopping and the best iteration
    rows:   training rows of all ranks
    """

    def __init__(
        self,
        args: Namespace,
        ranks: Ranks,
        validation: Validation,
        checkpoints: Checkpoints,
        progress: Progress,
        *,
        metric: str,
        rows: int,
    ) -> None:
        self.progress = progress
        self.rank = ranks.rank
        self._args, self._ranks, self._validation, self._checkpoints = args, ranks, validation, checkpoints
        self._metric, self._rows = metric, rows
        self._scores: Mapping[str, float] = {}
        self._eviction = Eviction()
        self._since = (progress.iteration, time.process_time())

    def evaluate(self, predictions: NDArray[Any], _rows: lightgbm.Dataset) -> list[tuple[str, float, bool]]:
        """Evaluate if it is due. Return [], because LightGBM would add up values of only this rank's rows."""
        if self._due(self.progress.iteration + 1, self._args.eval_steps):
            self._scores = self._validation.scores(predictions)
        return []

    def after_iteration(self, environment: lightgbm.callback.CallbackEnv) -> None:
        """Count the iteration, and log and save if it is due. Raise EarlyStopException, or Evicted after a
        checkpoint."""
        self.progress.iteration += 1
        iteration = self.progress.iteration
        self.progress.history.count(self._rows)
        evaluated = self._due(iteration, self._args.eval_steps)
        if evaluated:
            self._log()
        evicted = self._ranks.any_rank(self._eviction.requested)
        if self._ranks.is_main and (evicted or self._due(iteration, self._args.save_steps)):
            self._checkpoints.save(environment.model.model_to_string(num_iteration=-1), self.progress)
        if evicted:
            self._ranks.barrier()  # the others must not end rank 0 while it writes
            raise Evicted
        if evaluated and self._has_stalled():
            raise lightgbm.callback.EarlyStopException(self.progress.best_iteration - 1, [])

    def _due(self, iteration: int, every: int) -> bool:
        return iteration == self._args.num_iterations or (every > 0 and iteration % every == 0)

    def _log(self) -> None:
        progress, scores, total = self.progress, self._scores, self._args.num_iterations
        value = scores[self._metric]
        better = progress.best is None or (
            value > progress.best if HIGHER_IS_BETTER[self._metric] else value < progress.best
        )
        if better:
            progress.best, progress.best_iteration = value, progress.iteration
        before, processor = self._since
        self._since = (progress.iteration, time.process_time())
        own = [(self._since[1] - processor) / (progress.iteration - before), peak_memory()]
        cpu_seconds, peak = map(max, zip(*self._ranks.all_gather(own), strict=True))
        loss = scores[LOSS["rmse" in scores]]
        point = progress.history.add(progress.iteration, loss, peak, cpu_seconds)
        values = {f"validation_{name}": score for name, score in scores.items()}
        values["iteration_seconds"] = point.seconds
        self._ranks.metrics.log(values, step=progress.iteration, total=total)
        if self._ranks.is_main:
            text = ", ".join(f"{name} {score:.4f}" for name, score in scores.items())
            print(f"iteration {progress.iteration} of {total}: validation {text}", flush=True)

    def _has_stalled(self) -> bool:
        rounds: int = self._args.early_stopping_round
        return 0 < rounds <= self.progress.iteration - self.progress.best_iteration
