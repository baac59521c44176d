"""The HTML page: the verdict, bandwidth and time by size, and all figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from collectives import COLLECTIVES
from measuring import Row, Skipped

from allranks.runtime.ranks.machines import Machine
from allranks_steps.charts import sheet
from allranks_steps.charts.axis import Axis, Frame, LogAxis, dot, path, svg
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
    if not rows:
        return '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 520 300"></svg>\n'
    style = f"<style>{sheet.STYLE.read_text(encoding='utf-8')} svg {{ background: var(--paper); }}</style>"
    start, rest = _bandwidth(rows, verdict, named=True).split("\n", 1)
    return f'{start[:-1]} xmlns="http://www.w3.org/2000/svg">\n{style}\n{rest}\n'


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
            f"The {about['instance_count']} instances shared {shared}: no network lies between them, and the figures "
            f"say nothing about one."
        )
    reasons: dict[tuple[str, str], list[int]] = {}
    for entry in skipped:
        reasons.setdefault((entry.collective, entry.reason), []).append(entry.size)
    for (name, reason), sizes in reasons.items():
        yield f"Not measured: {COLLECTIVES[name].label} of {', '.join(map(bytes_text, sizes))}. {reason}"


def _charts(rows: Sequence[Row], verdict: Verdict) -> str:
    dashed = "; dashed: expected of an all-reduce" if verdict.expected_gb_s else ""
    parts = [
        sheet.chart("Bus bandwidth", f"in GB/s, by bytes{dashed}", _bandwidth(rows, verdict)),
        sheet.chart("Time", "of a call in microseconds, by bytes", _times(rows)),
    ]
    return sheet.charts(parts, [(_colour(name), COLLECTIVES[name].label) for name in _series(rows)])


def _bandwidth(rows: Sequence[Row], verdict: Verdict, *, named: bool = False) -> str:
    frame = Frame("Bus bandwidth by size")
    expected = verdict.expected_gb_s
    x = _sizes(rows, frame)
    y = Axis(0.0, max(*(row.bus_gb_s for row in rows), expected or 0.0) * 1.08 or 1.0, *frame.y)
    parts = _curves(rows, x, lambda row: y(row.bus_gb_s))
    if expected:
        low, high = frame.x
        parts.insert(0, f'<path class="ideal" d="M{low} {y(expected)}H{high}"/>')
    if named:
        for line, name in enumerate(_series(rows)):
            parts.append(
                f'<text class="s{_colour(name)}" style="fill: var(--series)" x="{frame.left + 10}" '
                f'y="{frame.top + 12 + 15 * line}">{COLLECTIVES[name].label}</text>'
            )
    return svg(frame, _marks(rows, x), [(y(value), f"{value:.4g}") for value in y.marks(5)], "bytes", parts)


def _times(rows: Sequence[Row]) -> str:
    frame = Frame("Time of a call by size")
    times = [row.seconds * 1e6 for row in rows]
    x = _sizes(rows, frame)
    y = LogAxis(min(times) / 1.2, max(times) * 1.2, *frame.y)
    parts = _curves(rows, x, lambda row: y(row.seconds * 1e6))
    return svg(frame, _marks(rows, x), [(y(value), f"{value:,.6g}") for value in y.marks(5)], "bytes", parts)


def _sizes(rows: Sequence[Row], frame: Frame) -> LogAxis:
    low, high = frame.x
    # Room on both sides for the labels of the marks.
    return LogAxis(min(row.size for row in rows), max(row.size for row in rows), low + 16, high - 16)


def _curves(rows: Sequence[Row], x: Callable[[float], float], y: Callable[[Row], float]) -> list[str]:
    parts = []
    for name, own in _series(rows).items():
        label = COLLECTIVES[name].label
        points = {(x(row.size), y(row)): row for row in own}
        style = f"curve line s{_colour(name)}"
        parts.append(path(style, points, label))
        for point, row in points.items():
            title = f"{label} of {bytes_text(row.size)}: {row.bus_gb_s:.3g} GB/s, {row.seconds * 1e6:,.1f} us"
            parts.append(dot(style, point, title))
    return parts


def _marks(rows: Sequence[Row], x: Callable[[float], float]) -> list[tuple[float, str]]:
    sizes = sorted({row.size for row in rows})
    return [(x(size), bytes_text(size)) for size in sizes[:: -(-len(sizes) // MARKS)]]


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
