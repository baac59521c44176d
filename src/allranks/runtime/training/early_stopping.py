"""End a training whose metric no longer improves."""

from __future__ import annotations

import math
from typing import Any

from allranks.errors import InputError, Problem
from allranks.runtime.ranks.ranks import Ranks

MODES = ("min", "max")


class EarlyStopping:
    """Decide, equally on every rank, whether a training should end because a metric no longer improves.

        stopping = runtime.EarlyStopping(ranks, patience=3)
        checkpoints = runtime.Checkpoints(folder, ranks, {"training": training, "stopping": stopping})
        checkpoints.load()
        while not stopping.stopped and epoch < epochs:
            ...
            stopping.update(validation_loss)

    patience:  number of consecutive updates without an improvement after which the training should end
    mode:      "min" if a lower metric is better, "max" if a higher one is
    min_delta: an improvement is a change of more than this

    best:      the best metric so far; None before the first update
    improved:  whether the last update was an improvement
    stopped:   whether the training should end, also after a resume

    Raise InputError for a patience below 1, another mode or a negative min_delta.
    """

    def __init__(self, ranks: Ranks, *, patience: int, mode: str = "min", min_delta: float = 0.0) -> None:
        if patience < 1:
            raise InputError(Problem("patience", str(patience), "at least 1", "use a positive number"))
        if mode not in MODES:
            raise InputError(Problem("mode", repr(mode), "min or max", "use one of these"))
        if not 0 <= min_delta < math.inf:
            raise InputError(Problem("min_delta", str(min_delta), "at least 0", "use 0 to count every improvement"))
        self._ranks = ranks
        self._patience, self._mode, self._min_delta = patience, mode, min_delta
        self._without_improvement = 0
        self.best: float | None = None
        self.improved = False

    @property
    def stopped(self) -> bool:
        """Whether the training should end."""
        return self._without_improvement >= self._patience

    def update(self, metric: float) -> bool:
        """Add the metric of an evaluation, and return whether the training should end. A collective.

        metric: the mean over the ranks counts. NaN is not an improvement.
        """
        value = self._ranks.reduce(float(metric), "mean")
        if self.best is None:
            self.improved = not math.isnan(value)
        else:
            gain = self.best - value if self._mode == "min" else value - self.best
            self.improved = gain > self._min_delta
        if self.improved:
            self.best = value
            self._without_improvement = 0
        else:
            self._without_improvement += 1
        return self.stopped

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return {"best": self.best, "without_improvement": self._without_improvement, "mode": self._mode}

    def load_state_dict(self, state: dict[str, Any], /) -> None:
        """Load a state. Raise ValueError if it was saved with the other mode."""
        if state["mode"] != self._mode:
            raise ValueError(f"mode {state['mode']}, not {self._mode}")
        self.best, self._without_improvement = state["best"], state["without_improvement"]
