"""The figures that compare trainings."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from allranks_steps.trainings import Training


@dataclass(frozen=True)
class Row:
    """A training's figures.

    difference:         the largest relative difference of its loss from the first training's at the same step; None if
                        they have no step in common, or the loss is not finite
    step_seconds:       the median without the first point, which includes the warm-up
    sample:             name of one sample
    samples_per_second: over all ranks
    peak_memory:        MiB, on the rank with the highest
    """

    name: str
    launcher: str
    world_size: int
    loss: float
    difference: float | None
    step_seconds: float
    sample: str
    samples_per_second: float
    peak_memory: float


def rows(trainings: Sequence[Training]) -> list[Row]:
    """Return the figures of each training. Differences are relative to the first one."""
    return [_row(training, trainings[0]) for training in trainings]


def _row(training: Training, first: Training) -> Row:
    points = training.points
    seconds = median(point.seconds for point in points[1:] or points)
    return Row(
        name=training.name,
        launcher=training.launcher,
        world_size=training.world_size,
        loss=points[-1].loss,
        difference=_difference(training, first),
        step_seconds=seconds,
        sample=training.sample,
        samples_per_second=training.samples_per_step / seconds,
        peak_memory=max(point.peak_memory for point in points),
    )


def _difference(training: Training, first: Training) -> float | None:
    expected = {point.step: point.loss for point in first.points}
    differences = [
        abs(point.loss - expected[point.step]) / abs(expected[point.step])
        for point in training.points
        if expected.get(point.step)
    ]
    return max(differences) if differences and all(map(math.isfinite, differences)) else None
