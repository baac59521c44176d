"""The HTML page: the verdict, bandwidth and time by size, and all figures."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from collectives import COLLECTIVES
from matplotlib.axes import Axes
from measuring import Row, Skipped

from allranks.runtime.ranks.machines import Machine
from allranks_steps.charts import sheet
from allranks_steps.charts.figure import IDEAL, SERIES, inline, log_scale, svg
from allranks_steps.trainings import hardware
from verdict import Verdict

MARKS = 8
"""Maximum number of labelled sizes below a chart."""


CAPTION = (
    "Bytes of the whole array. Time of a call: the mean over the calls, of the rank that took the longest. Algorithm "
    "bandwidth: bytes over time. Bus bandwidth: that times 2(n-1)/n for all-reduce, (n-1)/n for all-gather and "
    "reduce-scatter, 1 for broadcast and point to point, as nccl-tests defines it. Wrong: elements of the checked "
    "result."
)


def html(about: dict[str, Any], rows: Sequence[Row], skipped: Sequence[Skipped], verdict: Verdict) -> str:
    """Return the page as HTML. about: the description of the ranks in bandwidth.json."""
    count = about["instance_count"]
    lead = (
        f"{about['world_size']} ranks on {count} instance{'s' * (count > 1)} over {about['backend']}, "
        f"{about['dtype']}, torch {about['torch']}"
    )
    parts = [
        sheet.figures(_figures(rows, verdict)),
        sheet.verdict(verdict.text),
        sheet.notes(_notes(about, rows, skipped)),
    ]
    if rows:
        parts += [_charts(rows, verdict), _table(rows)]
    return sheet.html("Collectives", lead, parts)


def picture(rows: Sequence[Row], verdict: Verdict) -> str:
    """Return the chart of the bus bandwidth as a standalone SVG file."""

    def draw(axes: Axes) -> None:
        _bandwidth(axes, rows, verdict)
        axes.legend()

    return svg(draw if rows else lambda axes: axes.set_axis_off(), background="white")


def bytes_text(size: float) -> str:
    """Format a size in the largest binary unit that does not exceed it."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.3g} {unit}"


def _figures(rows: Sequence[Row], verdict: Verdict) -> Iterator[tuple[str, str]]:
    yield verdict.word, "the verdict on all-reduce"
    for name, own in _series(rows).items():
        best = max(own, key=lambda row: row.bus_gb_s)
        yield f"{best.bus_gb_s:.3g} GB/s", f"{COLLECTIVES[name].label}, at {bytes_text(best.size)}"


def _notes(about: dict[str, Any], rows: Sequence[Row], skipped: Sequence[Skipped]) -> Iterator[str]:
    wrong = sorted({COLLECTIVES[row.collective].label for row in rows if row.wrong})
    if wrong:
        yield f"Wrong results: {', '.join(wrong)}. The table says at which sizes."
    machines = [Machine(**machine) for machine in about["machines"]]
    if len(machines) < about["instance_count"]:
        shared = hardware(machines, about["device"])
        yield (
            f"The {about['instance_count']} instances shared {shared}. There is no network between them, and the "
            f"figures do not measure one."
        )
    reasons: dict[tuple[str, str], list[int]] = {}
    for entry in skipped:
        reasons.setdefault((entry.collective, entry.reason), []).append(entry.size)
    for (name, reason), sizes in reasons.items():
        yield f"Not measured: {COLLECTIVES[name].label} of {', '.join(map(bytes_text, sizes))}. {reason}"


def _charts(rows: Sequence[Row], verdict: Verdict) -> str:
    dashed = "; dashed: expected of an all-reduce" if verdict.expected_gb_s else ""
    bandwidth = inline("Bus bandwidth by size", lambda axes: _bandwidth(axes, rows, verdict))
    times = inline("Time of a call by size", lambda axes: _times(axes, rows))
    parts = [
        sheet.chart("Bus bandwidth", f"in GB/s, by bytes{dashed}", bandwidth),
        sheet.chart("Time", "of a call in microseconds, by bytes", times),
    ]
    return sheet.charts(parts, [(_colour(name), COLLECTIVES[name].label) for name in _series(rows)])


def _bandwidth(axes: Axes, rows: Sequence[Row], verdict: Verdict) -> None:
    if verdict.expected_gb_s:
        axes.axhline(verdict.expected_gb_s, **IDEAL)
    _draw(axes, rows, lambda row: row.bus_gb_s)
    axes.set_ylim(bottom=0)


def _times(axes: Axes, rows: Sequence[Row]) -> None:
    log_scale(axes)
    _draw(axes, rows, lambda row: row.seconds * 1e6)
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,.6g}")


def _draw(axes: Axes, rows: Sequence[Row], value: Callable[[Row], float]) -> None:
    for name, own in _series(rows).items():
        label, colour = COLLECTIVES[name].label, SERIES[_colour(name)]
        axes.plot([row.size for row in own], list(map(value, own)), marker="o", color=colour, label=label)
    sizes = sorted({row.size for row in rows})
    marked = sizes[:: -(-len(sizes) // MARKS)]
    axes.set_xscale("log", base=2)
    axes.set_xticks(marked, [bytes_text(size) for size in marked])
    axes.set_xlabel("bytes", loc="right")


def _table(rows: Sequence[Row]) -> str:
    most = max(row.bus_gb_s for row in rows)
    cells = [
        [
            f"{sheet.key(_colour(name))}{COLLECTIVES[name].label}",
            f"{row.size:,}",
            f"{row.seconds * 1e6:,.1f}",
            f"{row.mean_seconds * 1e6:,.1f}",
            f"{row.algorithm_gb_s:.4g}",
            f"{sheet.bar(row.bus_gb_s, most)}{row.bus_gb_s:.4g}",
            f"{row.wrong:,}",
        ]
        for name, own in _series(rows).items()
        for row in own
    ]
    names = ("collective", "bytes", "time, us", "mean of ranks, us", "algorithm, GB/s", "bus, GB/s", "wrong")
    return sheet.table(names, cells, CAPTION)


def _series(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of each collective."""
    return {name: found for name in COLLECTIVES if (found := [row for row in rows if row.collective == name])}


def _colour(name: str) -> int:
    return list(COLLECTIVES).index(name)
