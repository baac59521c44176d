"""The sweeps of a run with their trials: the values that each trial got, and what it reached."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from allranks.history.records import StepRecord

OBJECTIVE = "objective"
"""The input of a sweep's record with its goal and its primary metric: ``maximize accuracy``."""

SPACE = "search_space."
"""How the inputs of a sweep's record begin that describe its parameters: ``search_space.lr``."""


@dataclass(frozen=True)
class Trial:
    """A trial. values: of the parameters. value: the best one of the primary metric; None if it logged none"""

    number: int
    record: StepRecord
    values: tuple[str, ...]
    value: float | None


@dataclass(frozen=True)
class SweepTrials:
    """A sweep. trials: in the order of their numbers"""

    record: StepRecord
    metric: str
    maximize: bool
    parameters: tuple[str, ...]
    trials: tuple[Trial, ...]

    @property
    def ranking(self) -> list[Trial]:
        """The trials, the best ones first; those without a value last."""
        sign = -1 if self.maximize else 1
        return sorted(self.trials, key=lambda each: math.inf if each.value is None else sign * each.value)


def sweeps(steps: Iterable[StepRecord]) -> list[SweepTrials]:
    """Return the sweeps among the steps of a run, in their order."""
    steps = list(steps)
    trials: dict[str, list[StepRecord]] = {}
    for step in steps:
        if step.is_trial:
            trials.setdefault(step.name.rpartition(".trial[")[0], []).append(step)
    return [_sweep(step, trials.get(step.name, [])) for step in steps if step.kind == "sweep"]


def _sweep(record: StepRecord, trials: list[StepRecord]) -> SweepTrials:
    goal, _, metric = record.inputs.get(OBJECTIVE, "").partition(" ")
    names = tuple(name.removeprefix(SPACE) for name in record.inputs if name.startswith(SPACE))
    best = max if goal == "maximize" else min

    def of(trial: StepRecord) -> Trial:
        finite = [point.value for point in tuple(trial.metrics.get(metric, ())) if math.isfinite(point.value)]
        values = tuple(trial.inputs.get(name, "") for name in names)
        return Trial(int(trial.name.rpartition("[")[2].rstrip("]")), trial, values, best(finite, default=None))

    return SweepTrials(record, metric, goal == "maximize", names, tuple(map(of, trials)))
