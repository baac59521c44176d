"""Charts with axes: one for each family of metrics, such as training and validation loss.

The pages of components have their own axes in `allranks_steps.charts`, because a component's code is copied to the
cluster without this package. Those may be logarithmic; these have times, and gaps for values that are not finite.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from allranks.history.curves import best, families, thin
from allranks.history.records import Point, StepRecord
from allranks.text import duration, number

_SECONDS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200)
_SMALLEST = 1e-290
LARGEST = 1e100
"""Larger values are not drawn, because their differences and squares might overflow."""
WIDTH, HEIGHT = 510, 250
LEFT, RIGHT, TOP, BOTTOM = 54, 12, 10, 34
SERIES = 6
"""Maximum curves of a chart: the number of colours."""
_DOTS = 30
"""Maximum points of a curve that is drawn with a dot for each point."""
_MARKS = 100
_INTERVALS = (WIDTH - LEFT - RIGHT) // 2
"""Intervals of a curve of which only the outermost points are drawn."""


class Tick(NamedTuple):
    """A mark on an axis, or in place of a point that cannot be drawn. at: pixels from the picture's left or top edge"""

    at: float
    label: str


@dataclass(frozen=True)
class Scale:
    """Map values from low to high to pixels from start to stop, which is below start on an axis that points up."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        """Return the pixel of a value, rounded to a tenth; the middle if the scale has no extent."""
        span = self.high - self.low
        fraction = (value - self.low) / span if span else 0.5
        return round(self.start + fraction * (self.stop - self.start), 1)


def drawable(value: float) -> bool:
    """Return whether a value is finite and at most LARGEST."""
    return math.isfinite(value) and abs(value) <= LARGEST


def round_step(span: float, count: int) -> float:
    """Return the step of 1, 2 or 5 times a power of ten that divides the span into about `count` parts."""
    power = 10.0 ** math.floor(math.log10(span / count))
    return min((factor * power for factor in (1, 2, 5, 10)), key=lambda step: abs(span / step - count))


def value_scale(low: float, high: float, start: float, stop: float) -> tuple[Scale, list[Tick]]:
    """Return a scale around the values that ends at round numbers, and its ticks."""
    if high - low <= max(1e-9 * max(abs(low), abs(high)), _SMALLEST):
        margin = abs(low) / 2 if abs(low) > _SMALLEST else 0.5
        low, high = low - margin, high + margin
    step = round_step(high - low, 5)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    scale = Scale(first * step, last * step, start, stop)
    return scale, [Tick(scale(index * step), tick_label(index * step, step)) for index in range(first, last + 1)]


def count_scale(low: float, high: float, start: float, stop: float) -> tuple[Scale, list[Tick]]:
    """Return a scale for training steps, from the first to the last, and its ticks at integers."""
    scale = Scale(low, high, start, stop)
    step = max(round_step(high - low, 6), 1.0) if high > low else 1.0
    indexes = range(math.ceil(low / step), math.floor(high / step) + 1)
    return scale, [Tick(scale(index * step), f"{index * step:,.0f}") for index in indexes]


def time_scale(seconds: float, start: float, stop: float) -> tuple[Scale, list[Tick]]:
    """Return a scale from 0 to `seconds`, and its ticks at usual units of time."""
    scale, count = Scale(0.0, seconds or 1.0, start, stop), 8
    if scale.high < 6:
        step = round_step(scale.high, count)
    else:
        days = (86400.0 * factor for factor in (1, 2, 5, 10, 20, 50, 100, 1000, 10000, 100000))
        step = min((*map(float, _SECONDS), *days), key=lambda step: abs(scale.high / step - count))
    indexes = range(min(math.floor(scale.high / step + 1e-9), 10 * count) + 1)
    return scale, [Tick(scale(index * step), _moment(index * step)) for index in indexes]


def tick_label(value: float, step: float) -> str:
    """Return the value with as many decimals as distinguish it from its neighbours."""
    if abs(value) >= 1e6 or step < 1e-5:
        return f"{value:.3g}" if abs(value) > step / 2 else "0"
    decimals = max(-math.floor(math.log10(step) + 1e-9), 0)
    return f"{value + 0.0:,.{decimals}f}"


def _moment(seconds: float) -> str:
    if seconds == 0:
        return "0"
    if seconds < 60:
        return f"{seconds:.4g} s"
    return duration(seconds).removesuffix(" 00 s").removesuffix(" 00 min").removesuffix(" 0 h")


class Curve(NamedTuple):
    """The points of a metric, and the name of the curve in the chart."""

    name: str
    metric: str
    points: Sequence[Point]


class Series(NamedTuple):
    """A curve: the data of an SVG path, dots if there are few points, and marks for values that are not finite.

    place: of its colour
    """

    name: str
    place: int
    path: str
    dots: tuple[tuple[float, float, str], ...]
    marks: tuple[Tick, ...]
    last: str
    best: str
    points: tuple[tuple[float, float], ...]
    total: int


@dataclass(frozen=True)
class Chart:
    """A chart with its axes, in pixels. of: the step, or the common path of all steps whose curves it shows"""

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
    """Return the charts of a step: one for each family with a metric that has two points."""
    return [
        make_chart(title, step.name, [Curve(name, name, step.metrics[name]) for name in names[start : start + SERIES]])
        for title, names in families(step.metrics).items()
        if max(len(step.metrics[name]) for name in names) > 1
        for start in range(0, len(names), SERIES)
    ]


def drawing_cost(step: StepRecord, name: str | None = None) -> int:
    """Return the approximate size on a page of a metric of the step, or of all its curves, in points of long curves.

    A point of a short curve has a dot and takes several times as much space.
    """
    curves = step.metrics.values() if name is None else [step.metrics[name]]
    lengths = [len(points) for points in curves if len(points) > 1]
    return sum(60 + (5 * length if length <= _DOTS else min(length, 4 * _INTERVALS)) for length in lengths)


def make_chart(title: str, of: str, curves: Sequence[Curve]) -> Chart:
    """Return the chart of the curves, at least one of which has a point. The colour of a curve is that of its place."""
    places = [place for place, curve in enumerate(curves) if curve.points]
    curves = [curves[place] for place in places]
    # Values that are logged without a step are all at step 0. The x axis then shows their order.
    ordered = any(len({point.step for point in curve.points}) > 1 for curve in curves)
    pairs = [
        [(float(point.step if ordered else index), point.value) for index, point in enumerate(curve.points)]
        for curve in curves
    ]
    xs = [x for points in pairs for x, _ in points]
    ys = [y for points in pairs for _, y in points if drawable(y)]
    x, x_ticks = count_scale(min(xs), max(xs), LEFT, WIDTH - RIGHT)
    y, y_ticks = value_scale(min(ys), max(ys), HEIGHT - BOTTOM, TOP) if ys else (None, [])
    label = "step" if ordered else "value"
    series = tuple(_series(*each, x, y) for each in zip(curves, places, pairs, strict=True))
    return Chart(title, of, series, tuple(x_ticks), tuple(y_ticks), label, x, y)


def _series(curve: Curve, place: int, points: Sequence[tuple[float, float]], x: Scale, y: Scale | None) -> Series:
    drawn = thin(points, _INTERVALS)
    best_point = best(curve.metric, curve.points)
    dotted = [(at, value) for at, value in drawn if drawable(value)] if y and len(points) <= _DOTS else []
    return Series(
        name=curve.name,
        place=place,
        path=_path(drawn, x, y) if y else "",
        dots=tuple((x(at), y(value), f"{curve.name} {number(value)} at {at:,.0f}") for at, value in dotted if y),
        marks=_marks(curve.name, points, x),
        last=number(curve.points[-1].value),
        best="" if best_point is None else number(best_point.value),
        points=tuple(drawn),
        total=len(points),
    )


def _path(points: Sequence[tuple[float, float]], x: Scale, y: Scale) -> str:
    """Return the data of a line that is interrupted at values that cannot be drawn. A single point becomes a dot."""
    data, pen = "", "M"
    for at, value in points:
        if drawable(value):
            data += f"{pen}{x(at)} {y(value)}" + ("h0" if pen == "M" else "")
        pen = "L" if drawable(value) else "M"
    return data


def _marks(name: str, points: Sequence[tuple[float, float]], x: Scale) -> tuple[Tick, ...]:
    """Return marks for values that are not finite: at most one per pixel, for the first value there."""
    marks: dict[int, Tick] = {}
    for at, value in points:
        if not drawable(value) and len(marks) < _MARKS:
            marks.setdefault(round(x(at)), Tick(x(at), f"{name} is {number(value)} at {at:,.0f}"))
    return tuple(marks.values())
