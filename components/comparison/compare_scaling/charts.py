"""Charts over the number of instances, each as one SVG image."""

from collections.abc import Callable, Sequence

from matplotlib.axes import Axes
from scaling import Study

from allranks_steps.charts.figure import IDEAL, SERIES, inline, log_scale

NARROW, WIDE = 520, 1076
"""Width in pixels of a chart beside another, and of one alone in its row."""


def throughput(study: Study, width: int) -> str:
    """Plot samples per second over instances on logarithmic axes: perfect scaling is a straight line. Whiskers show
    the spread."""
    first, counts = study.rows[0], _counts(study)

    def draw(axes: Axes) -> None:
        log_scale(axes)
        axes.plot(counts, [first.throughput * count / first.instance_count for count in counts], **IDEAL)
        low, high = zip(*(row.spread for row in study.rows), strict=True)
        axes.vlines(counts, low, high, color=IDEAL["color"], linewidth=1.5)
        _draw(axes, study, [row.throughput for row in study.rows], SERIES[0], figure)

    return inline("Throughput by number of instances", draw, width)


def efficiency(study: Study) -> str:
    """Plot efficiency over instances, with a line at perfect scaling."""

    def draw(axes: Axes) -> None:
        axes.axhline(1.0, **IDEAL)
        _draw(axes, study, [row.efficiency for row in study.rows], SERIES[2], "{:.0%}".format)

    return inline("Efficiency by number of instances", draw, NARROW)


def cost(study: Study) -> str:
    """Plot the cost of a million samples over instances. The study must have a price."""
    costs = [row.cost or 0.0 for row in study.rows]
    return inline("Cost by number of instances", lambda axes: _draw(axes, study, costs, SERIES[1], figure), NARROW)


def _draw(axes: Axes, study: Study, values: Sequence[float], colour: str, label: Callable[[float], str]) -> None:
    """Draw a line through the values of the rows, with each value above its point."""
    counts = _counts(study)
    axes.plot(counts, values, marker="o", color=colour)
    for count, value in zip(counts, values, strict=True):
        axes.annotate(label(value), (count, value), (0, 8), textcoords="offset points", ha="center", weight="bold")
    axes.set_xscale("log", base=2)
    axes.set_xticks(counts, [f"{count:,}" for count in counts])
    axes.set_xlabel("instances", loc="right")
    axes.margins(0.08, 0.15)
    if axes.get_yscale() == "linear":
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(lambda value, _: label(value))


def _counts(study: Study) -> list[int]:
    return [row.instance_count for row in study.rows]


def figure(value: float | None) -> str:
    """Format a number with three significant digits, or with all its integer digits if there are more."""
    if not value:
        return "–" if value is None else "0"
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}".rstrip(".")
