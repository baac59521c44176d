"""Charts over the number of instances, each as one SVG image."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scaling import Study

from allranks_steps.charts.axis import Axis, Frame, LogAxis, dot, path, svg

NARROW, WIDE = 520, 1076
"""Width in pixels of a chart beside another, and of one alone in its row."""


def throughput(study: Study, width: int) -> str:
    """Plot samples per second over instances on logarithmic axes: perfect scaling is a straight line. Whiskers show
    the spread."""
    frame = Frame("Throughput by number of instances", width)
    first = study.rows[0]
    ideal = [first.throughput * row.instance_count / first.instance_count for row in study.rows]
    values = [value for row in study.rows for value in (row.throughput, *row.spread)] + ideal
    x, y = _instances(study, frame), LogAxis(min(values) / 1.15, max(values) * 1.15, *frame.y)
    parts = [path("ideal", _points(study, ideal, x, y))]
    for row in study.rows:
        low, high = row.spread
        parts.append(f'<path class="whisker" d="M{x(row.instance_count)} {y(low)}V{y(high)}"/>')
    return _chart(study, frame, y, [row.throughput for row in study.rows], "curve line s0", figure, parts)


def efficiency(study: Study) -> str:
    """Plot efficiency over instances, with a line at perfect scaling."""
    frame = Frame("Efficiency by number of instances", NARROW)
    values = [row.efficiency for row in study.rows]
    x, y = _instances(study, frame), Axis(0.0, max(1.0, *values) * 1.1, *frame.y)
    perfect = path("ideal", _points(study, [1.0] * len(values), x, y))
    return _chart(study, frame, y, values, "curve line s2", "{:.0%}".format, [perfect])


def cost(study: Study) -> str:
    """Plot the cost of a million samples over instances. The study must have a price."""
    values = [row.cost or 0.0 for row in study.rows]
    frame = Frame("Cost by number of instances", NARROW)
    y = Axis(0.0, max(values) * 1.15, *frame.y)
    return _chart(study, frame, y, values, "curve line s1", figure, [])


def _chart(
    study: Study,
    frame: Frame,
    y: Axis,
    values: Sequence[float],
    style: str,
    label: Callable[[float], str],
    parts: Sequence[str],
) -> str:
    """Draw a line through the values of the rows, with each value above its point, on top of the parts."""
    x = _instances(study, frame)
    points = _points(study, values, x, y)
    drawn = [*parts, path(style, points)]
    for point, value in zip(points, values, strict=True):
        drawn.append(dot(style, point))
        place = f'x="{point[0]}" y="{round(point[1] - 11, 1)}" text-anchor="middle"'
        drawn.append(f'<text class="value" {place}>{label(value)}</text>')
    x_marks = [(x(row.instance_count), f"{row.instance_count:,}") for row in study.rows]
    return svg(frame, x_marks, [(y(value), label(value)) for value in y.marks(5)], "instances", drawn)


def _points(study: Study, values: Sequence[float], x: Axis, y: Axis) -> list[tuple[float, float]]:
    return [(x(row.instance_count), y(value)) for row, value in zip(study.rows, values, strict=True)]


def _instances(study: Study, frame: Frame) -> Axis:
    low, high = frame.x
    # Room on both sides, so that no point lies on the edge.
    return LogAxis(study.rows[0].instance_count, study.rows[-1].instance_count, low + 24, high - 24)


def figure(value: float | None) -> str:
    """Format a number with three significant digits, or with all its integer digits if there are more."""
    if not value:
        return "–" if value is None else "0"
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}".rstrip(".")
