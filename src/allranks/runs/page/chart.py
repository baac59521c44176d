"""Learning curves: one chart a family of metrics, such as the losses of training and validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from allranks.runs.curves import best, families, thin
from allranks.runs.formatting import number
from allranks.runs.page.scale import Scale, Tick, count_scale, drawable, value_scale
from allranks.runs.records import Point, StepRecord

WIDTH, HEIGHT = 510, 250
LEFT, RIGHT, TOP, BOTTOM = 54, 12, 10, 34
SERIES = 6
"""Curves that one chart holds: as many as there are colours."""
_DOTS = 30
"""Points up to which each is marked."""
_MARKS = 100


_STRETCHES = (WIDTH - LEFT - RIGHT) // 2
"""Stretches of a curve of which only the outermost points are drawn."""


@dataclass(frozen=True)
class Curve:
    """The points of a metric, and what the chart calls them."""

    name: str
    metric: str
    points: Sequence[Point]


@dataclass(frozen=True)
class Mark:
    """A point that cannot be drawn where it belongs. x: pixels."""

    x: float
    title: str


@dataclass(frozen=True)
class Series:
    """A curve: the data of an SVG path, its points where they are few, and values that are no finite numbers."""

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
    """A chart with its axes, all in pixels. of: the step, or what all steps have in common whose curves it shows"""

    title: str
    of: str
    series: tuple[Series, ...]
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    x_label: str
    x: Scale
    y: Scale | None

    def data(self) -> dict[str, Any]:
        """Return what the page's script needs to tell values under the pointer."""
        ends = {"x": [self.x.low, self.x.high], "y": [self.y.low, self.y.high] if self.y else [0, 1]}
        series = [
            {"name": one.name, "points": [(x, y, number(y)) for x, y in one.points if drawable(y)]}
            for one in self.series
        ]
        return {**ends, "plot": [LEFT, TOP, WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM], "series": series}


def charts(step: StepRecord) -> list[Chart]:
    """Return the charts of a step. A family of which no metric has two points is no curve, and has none."""
    found = []
    for title, names in families(step.metrics).items():
        if max(len(step.metrics[name]) for name in names) < 2:
            continue
        for start in range(0, len(names), SERIES):
            curves = [Curve(name, name, step.metrics[name]) for name in names[start : start + SERIES]]
            found.append(make_chart(title, step.name, curves))
    return found


def drawing_cost(step: StepRecord, name: str | None = None) -> int:
    """Return about how much of a page a metric of the step takes, or all that have a curve, in points of long curves.

    A point of a short curve is marked and takes several times as much.
    """
    curves = step.metrics.values() if name is None else [step.metrics[name]]
    lengths = [len(points) for points in curves if len(points) > 1]
    return sum(60 + (5 * length if length <= _DOTS else min(length, 4 * _STRETCHES)) for length in lengths)


def make_chart(title: str, of: str, curves: Sequence[Curve]) -> Chart:
    """Return the chart of the curves, of which at least one has a point."""
    curves = [curve for curve in curves if curve.points]
    # Who logs without a step logs everything at step 0: then the order is the axis.
    ordered = any(len({point.step for point in curve.points}) > 1 for curve in curves)
    pairs = [
        [(float(point.step if ordered else place), point.value) for place, point in enumerate(curve.points)]
        for curve in curves
    ]
    xs = [x for points in pairs for x, _ in points]
    ys = [y for points in pairs for _, y in points if drawable(y)]
    x, x_ticks = count_scale(min(xs), max(xs), LEFT, WIDTH - RIGHT)
    y, y_ticks = value_scale(min(ys), max(ys), HEIGHT - BOTTOM, TOP) if ys else (None, [])
    series = tuple(_series(curve, points, x, y) for curve, points in zip(curves, pairs, strict=True))
    return Chart(title, of, series, tuple(x_ticks), tuple(y_ticks), "step" if ordered else "value", x, y)


def _series(curve: Curve, points: Sequence[tuple[float, float]], x: Scale, y: Scale | None) -> Series:
    name = curve.name
    drawn = thin(points, _STRETCHES)
    top = best(curve.metric, curve.points)
    return Series(
        name=name,
        path=_path(drawn, x, y) if y else "",
        dots=tuple((x(at), y(value), f"{name} {number(value)} at {at:,.0f}") for at, value in drawn if drawable(value))
        if y and len(points) <= _DOTS
        else (),
        marks=_marks(name, points, x),
        last=number(curve.points[-1].value),
        best="" if top is None else number(top.value),
        points=tuple(drawn),
        total=len(points),
    )


def _path(points: Sequence[tuple[float, float]], x: Scale, y: Scale) -> str:
    """Return a line that is broken where a value cannot be drawn; a point alone becomes a dot."""
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
    """Where values are no finite numbers: at most one mark a pixel, the first that is found there."""
    marks: dict[int, Mark] = {}
    for at, value in points:
        if not drawable(value) and len(marks) < _MARKS:
            marks.setdefault(round(x(at)), Mark(x(at), f"{name} is {number(value)} at {at:,.0f}"))
    return tuple(marks.values())
