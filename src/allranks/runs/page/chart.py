"""Learning curves: one chart per family of metrics, such as training and validation loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from allranks.runs.curves import best, families, thin
from allranks.runs.formatting import number
from allranks.runs.page.scale import Scale, Tick, count_scale, drawable, time_scale, value_scale
from allranks.runs.records import Point, StepRecord

WIDTH, HEIGHT = 510, 250
LEFT, RIGHT, TOP, BOTTOM = 54, 12, 10, 34
SERIES = 6
"""Maximum curves of a chart: the number of colours."""
_DOTS = 30
"""Maximum points of a curve of which each gets a dot."""
_MARKS = 100


_INTERVALS = (WIDTH - LEFT - RIGHT) // 2
"""Intervals of a curve. Of each, only the outermost points are drawn."""


@dataclass(frozen=True)
class Curve:
    """The points of a metric, and the name of the curve in the chart."""

    name: str
    metric: str
    points: Sequence[Point]


@dataclass(frozen=True)
class Mark:
    """A point that cannot be drawn at its value. x: pixels"""

    x: float
    title: str


@dataclass(frozen=True)
class Series:
    """A curve: the data of an SVG path, dots if there are few points, and marks for values that are not finite."""

    name: str
    path: str
    dots: tuple[tuple[float, float, str], ...]
    marks: tuple[Mark, ...]
    last: str
    best: str
    points: tuple[tuple[float, float], ...]
    total: int


@dataclass(frozen=True)
class Chart:
    """A chart with its axes, all in pixels. of: the step, or the common path of all steps whose curves it shows"""

    title: str
    of: str
    series: tuple[Series, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    x_label: str
    x: Scale
    y: Scale | None

    def data(self) -> dict[str, Any]:
        """Return the data with which the page's script shows the values at the pointer."""
        ends = {"x": [self.x.low, self.x.high], "y": [self.y.low, self.y.high] if self.y else [0, 1]}
        series = [
            {"name": curve.name, "points": [(x, y, number(y)) for x, y in curve.points if drawable(y)]}
            for curve in self.series
        ]
        plot = [LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM]
        return {**ends, "label": self.x_label, "plot": plot, "series": series}


def charts(step: StepRecord) -> list[Chart]:
    """Return the charts of a step. A family of which no metric has two points has no chart."""
    result = []
    for title, names in families(step.metrics).items():
        if max(len(step.metrics[name]) for name in names) < 2:
            continue
        for start in range(0, len(names), SERIES):
            curves = [Curve(name, name, step.metrics[name]) for name in names[start : start + SERIES]]
            result.append(make_chart(title, step.name, curves))
    return result


def drawing_cost(step: StepRecord, name: str | None = None) -> int:
    """Return the approximate size on a page of a metric of the step, or of all its curves, in points of long curves.

    A point of a short curve has a dot and takes several times as much.
    """
    curves = step.metrics.values() if name is None else [step.metrics[name]]
    lengths = [len(points) for points in curves if len(points) > 1]
    return sum(60 + (5 * length if length <= _DOTS else min(length, 4 * _INTERVALS)) for length in lengths)


def make_chart(title: str, of: str, curves: Sequence[Curve], *, seconds: bool = False) -> Chart:
    """Return the chart of the curves, of which at least one has a point.

    seconds: whether the steps of the points are seconds since the beginning
    """
    curves = [curve for curve in curves if curve.points]
    # Values that are logged without a step are all at step 0. The x axis is then their order.
    ordered = seconds or any(len({point.step for point in curve.points}) > 1 for curve in curves)
    pairs = [
        [(float(point.step if ordered else index), point.value) for index, point in enumerate(curve.points)]
        for curve in curves
    ]
    xs = [x for points in pairs for x, _ in points]
    ys = [y for points in pairs for _, y in points if drawable(y)]
    y: Scale | None
    y_ticks: list[Tick]
    if seconds:
        x, x_ticks = time_scale(max(xs), LEFT, WIDTH - RIGHT, 6)
        y, y_ticks = value_scale(0.0, max(ys, default=0.0), HEIGHT - BOTTOM, TOP)
        label = "time"
    else:
        x, x_ticks = count_scale(min(xs), max(xs), LEFT, WIDTH - RIGHT)
        y, y_ticks = value_scale(min(ys), max(ys), HEIGHT - BOTTOM, TOP) if ys else (None, [])
        label = "step" if ordered else "value"
    series = tuple(_series(curve, points, x, y) for curve, points in zip(curves, pairs, strict=True))
    return Chart(title, of, series, tuple(x_ticks), tuple(y_ticks), label, x, y)


def _series(curve: Curve, points: Sequence[tuple[float, float]], x: Scale, y: Scale | None) -> Series:
    name = curve.name
    drawn = thin(points, _INTERVALS)
    best_point = best(curve.metric, curve.points)
    return Series(
        name=name,
        path=_path(drawn, x, y) if y else "",
        dots=tuple((x(at), y(value), f"{name} {number(value)} at {at:,.0f}") for at, value in drawn if drawable(value))
        if y and len(points) <= _DOTS
        else (),
        marks=_marks(name, points, x),
        last=number(curve.points[-1].value),
        best="" if best_point is None else number(best_point.value),
        points=tuple(drawn),
        total=len(points),
    )


def _path(points: Sequence[tuple[float, float]], x: Scale, y: Scale) -> str:
    """Return a line that is interrupted where a value cannot be drawn. A single point becomes a dot."""
    data = []
    pen = "M"
    for at, value in points:
        if not drawable(value):
            pen = "M"
            continue
        data.append(f"{pen}{x(at)} {y(value)}" + ("h0" if pen == "M" else ""))
        pen = "L"
    return "".join(data)


def _marks(name: str, points: Sequence[tuple[float, float]], x: Scale) -> tuple[Mark, ...]:
    """Return marks for values that are not finite: at most one per pixel, for the first value there."""
    marks: dict[int, Mark] = {}
    for at, value in points:
        if not drawable(value) and len(marks) < _MARKS:
            marks.setdefault(round(x(at)), Mark(x(at), f"{name} is {number(value)} at {at:,.0f}"))
    return tuple(marks.values())
