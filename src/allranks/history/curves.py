"""Evaluate the curve of a metric: best value, family, thinning for display, estimated remaining time."""

import math
import re
from collections.abc import Mapping, Sequence
from typing import TypeVar

from allranks.history.records import Point, StepRecord

_Point = TypeVar("_Point", bound=tuple[float, ...])
_SPLIT = re.compile(r"[_/.\-\s]+")
_SUBSETS = frozenset(
    {"train", "training", "val", "valid", "validation", "test", "testing", "eval", "evaluation", "dev"}
)
_FALLS = frozenset({"loss", "error", "perplexity", "mae", "mse", "rmse", "wer", "cer", "nll"})
_RISES = frozenset({"accuracy", "acc", "f1", "auc", "precision", "recall", "score", "map", "bleu", "iou", "dice", "r2"})


def family(name: str) -> str:
    """Return what a metric measures, without the data set: ``train_loss`` and ``val/loss`` are both ``loss``."""
    words = [word for word in _SPLIT.split(name) if word and word.lower() not in _SUBSETS]
    return " ".join(words).lower() or name


def families(metrics: Mapping[str, Sequence[Point]]) -> dict[str, list[str]]:
    """Return the names of metrics by family, both in order of occurrence."""
    by_family: dict[str, list[str]] = {}
    for name in tuple(metrics):
        by_family.setdefault(family(name), []).append(name)
    return by_family


def direction(name: str) -> int:
    """Return -1 for a metric that should fall, 1 for one that should rise, 0 if its name does not tell."""
    words = {word.lower() for word in _SPLIT.split(name)}
    if words & _FALLS:
        return -1
    return 1 if words & _RISES else 0


def best(name: str, points: Sequence[Point]) -> Point | None:
    """Return the best finite point of a curve, the first of equal ones; None if the metric has no direction."""
    sign = direction(name)
    finite = [point for point in tuple(points) if math.isfinite(point.value)]
    return max(finite, key=lambda point: sign * point.value) if sign and finite else None


def headline(steps: Sequence[StepRecord], limit: int = 3) -> list[tuple[StepRecord, str, Point]]:
    """Return the most relevant last values: first of metrics that should rise, then of those that should fall, of late
    steps first.

    Other metrics, such as a learning rate, are used only if there are none of these.
    """
    entries = [
        (step, name, points[-1]) for step in reversed(steps) for name, points in tuple(step.metrics.items()) if points
    ]
    directed = [entry for entry in entries if direction(entry[1])] or entries
    return sorted(directed, key=lambda entry: -direction(entry[1]))[:limit]


def best_metric(steps: Sequence[StepRecord]) -> tuple[str, Point] | None:
    """Return the most relevant metric of the steps, and its best point, or its last one if it has no direction. Return
    None if they have no metrics."""
    for _, name, last in headline(steps, limit=1):
        best_points = [point for step in steps if (point := best(name, step.metrics.get(name, ()))) is not None]
        return name, best(name, best_points) or last
    return None


def buckets(points: Sequence[Point], width: int, samples: int = 16) -> list[float]:
    """Return at most `width` values of the curve: the mean of `samples` points of each interval, NaN for none.

    The cost is width x samples for any length of the curve, because a terminal redraws it several times per second.
    """
    length = len(points)
    if length <= width:
        return [points[index].value for index in range(length)]
    values = []
    for bucket in range(width):
        start, stop = bucket * length // width, (bucket + 1) * length // width
        stride = max((stop - start) // samples, 1)
        finite = [value for index in range(start, stop, stride) if math.isfinite(value := points[index].value)]
        values.append(sum(finite) / len(finite) if finite else math.nan)
    return values


def thin(points: Sequence[_Point], width: int) -> list[_Point]:
    """Return the points (x, y, ...) that are visible at a width of `width` pixels: the first, lowest, highest and last
    one of each interval.

    Points that are not finite are not compared; an interval keeps its first point, so that gaps stay visible.
    """
    if len(points) <= 4 * width:
        return list(points)
    selected: list[_Point] = []
    for bucket in range(width):
        start, stop = bucket * len(points) // width, (bucket + 1) * len(points) // width
        finite = [index for index in range(start, stop) if math.isfinite(points[index][1])]
        chosen = {start, stop - 1}
        if finite:
            chosen |= {min(finite, key=lambda index: points[index][1]), max(finite, key=lambda index: points[index][1])}
        selected.extend(points[index] for index in sorted(chosen))
    return selected


def remaining(step: StepRecord) -> float | None:
    """Return the estimated seconds until the step completes its training steps; None if unknown."""
    if step.progress is None or not step.progress.total:
        return None
    longest = max(tuple(step.metrics.values()), key=len, default=[])
    if len(longest) < 2:
        return None
    first, last = longest[0], longest[-1]
    if last.step <= first.step or last.time <= first.time:
        return None
    pace = (last.time - first.time) / (last.step - first.step)
    return max(step.progress.total - step.progress.done, 0) * pace
