"""Charts over the number of instances, each as one SVG image."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from scaling import Study

from allranks_steps.charts.axis import Axis, Frame, LogAxis, svg

NARROW, WIDE = 520, 1076
"""Width in pixels of a chart beside another, and of one alone in its row."""


def throughput(study: Study, width: int) -> str:
    """Plot samples per second over instances on logarithmic axes: perfect scaling is a straight line. Whiskers show
    the spread."""
    frame = Frame("Throughput by number of instances", width)
    first = study.rows[0]
    ideal = [(row.instance_count, first.throughput * row.instance_count / first.instance_count) for row in study.rows]
    values = [value for row in study.rows for value in (row.throughput, *row.spread)] + [value for _, value in ideal]
    x, y = _instances(study, frame), LogAxis(min(values) / 1.15, max(values) * 1.15, *frame.y)
    whiskers = [
        f'<path class="whisker" d="M{x(row.instance_count)} {y(row.spread[0])}V{y(row.spread[1])}"/>'
        for row in study.rows
    ]
    parts = [
        *_line("ideal", None, ideal, x, y),
        *whiskers,
        *_line("curve line s0", figure, [(row.instance_count, row.throughput) for row in study.rows], x, y),
    ]
    return svg(frame, _marks(study, x), [(y(value), figure(value)) for value in y.marks(5)], "instances", parts)


def efficiency(study: Study, width: int) -> str:
    """Plot efficiency over instances, with a line at perfect scaling."""
    frame = Frame("Efficiency by number of instances", width)
    highest = max(1.0, *(row.efficiency for row in study.rows))
    x, y = _instances(study, frame), Axis(0.0, highest * 1.1, *frame.y)
    ends = [(study.rows[0].instance_count, 1.0), (study.rows[-1].instance_count, 1.0)]
    parts = [
        *_line("ideal", None, ends, x, y),
        *_line(
            "curve line s2",
            lambda value: f"{value:.0%}",
            [(row.instance_count, row.efficiency) for row in study.rows],
            x,
            y,
        ),
    ]
    return svg(frame, _marks(study, x), [(y(value), f"{value:.0%}") for value in y.marks(5)], "instances", parts)


def cost(study: Study, width: int) -> str:
    """Plot the cost of a million samples over instances. The study must have a price."""
    costs = [(row.instance_count, row.cost or 0.0) for row in study.rows]
    frame = Frame("Cost by number of instances", width)
    x, y = _instances(study, frame), Axis(0.0, max(value for _, value in costs) * 1.15, *frame.y)
    parts = _line("curve line s1", figure, costs, x, y)
    return svg(frame, _marks(study, x), [(y(value), f"{value:,.4g}") for value in y.marks(5)], "instances", parts)


def _instances(study: Study, frame: Frame) -> Axis:
    low, high = frame.x
    # Room on both sides, so that no point lies on the edge.
    return LogAxis(study.rows[0].instance_count, study.rows[-1].instance_count, low + 24, high - 24)


def _marks(study: Study, x: Callable[[float], float]) -> list[tuple[float, str]]:
    return [(x(row.instance_count), f"{row.instance_count:,}") for row in study.rows]


def _line(
    style: str,
    label: Callable[[float], str] | None,
    points: Sequence[tuple[float, float]],
    x: Callable[[float], float],
    y: Callable[[float], float],
) -> list[str]:
    """Draw a line through the points. label: formats the value above each point; None for a line without dots."""
    data = "L".join(f"{x(at)} {y(value)}" for at, value in points)
    parts = [f'<path class="{style}" d="M{data}"/>']
    for at, value in points if label else ():
        parts.append(f'<circle class="{style}" cx="{x(at)}" cy="{y(value)}" r="4"/>')
        parts.append(
            f'<text class="value" x="{x(at)}" y="{round(y(value) - 11, 1)}" text-anchor="middle">{label(value)}</text>'
        )
    return parts


def figure(value: float | None) -> str:
    """Format a number with three significant digits, or with all its integer digits if there are more."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}".rstrip(".")
