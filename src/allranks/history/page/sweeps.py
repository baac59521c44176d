"""The sweeps on a run's page: a table of trials, parallel coordinates, and the objective over time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from allranks.history import trials
from allranks.history.page.chart import Chart, Curve, Tick, drawable, make_chart, value_scale
from allranks.history.records import Point, Status, StepRecord
from allranks.history.trials import SweepTrials, Trial

MOST = 100
"""Maximum trials of a sweep in its table: the best ones."""
_LINES = 300
"""Maximum trials with a line in parallel coordinates, and with a dot: the best ones."""
WIDTH, HEIGHT, SIDE, TOP, BOTTOM = 1040, 260, 60, 30, 14
_WIDE = 100.0
"""Ratio of the ends of an axis from which it is logarithmic."""
_FEW = 5
"""Maximum numbers on an axis that are labelled themselves."""


@dataclass(frozen=True)
class Axis:
    """An axis of parallel coordinates. x: pixels"""

    name: str
    x: float
    ticks: tuple[Tick, ...]


@dataclass(frozen=True)
class Line:
    """A trial in parallel coordinates. share: 0 for the worst value of the metric, 1 for the best one"""

    trial: Trial
    path: str
    share: float


@dataclass(frozen=True)
class SweepFigures:
    """The figures of one sweep. rows: the trials of the table. lines: the best one last, above the others"""

    sweep: SweepTrials
    rows: tuple[Trial, ...]
    axes: tuple[Axis, ...] = ()
    lines: tuple[Line, ...] = ()
    progress: Chart | None = None


def sweeps_of(steps: Iterable[StepRecord]) -> list[SweepFigures]:
    """Return the sweeps of a run that have trials."""
    return [_figures(sweep) for sweep in trials.sweeps(steps) if sweep.trials]


def _figures(sweep: SweepTrials) -> SweepFigures:
    ranking = sweep.ranking
    drawn = [trial for trial in ranking if trial.value is not None and drawable(trial.value)][:_LINES]
    if len(drawn) < 2:
        return SweepFigures(sweep, tuple(ranking[:MOST]))
    axes, lines = _parallel(sweep, drawn)
    return SweepFigures(sweep, tuple(ranking[:MOST]), axes, lines, _progress(sweep, drawn))


def _parallel(sweep: SweepTrials, drawn: Sequence[Trial]) -> tuple[tuple[Axis, ...], tuple[Line, ...]]:
    columns = {name: [trial.values[place] for trial in drawn] for place, name in enumerate(sweep.parameters)}
    columns[sweep.metric] = [repr(trial.value) for trial in drawn]
    step = (WIDTH - 2 * SIDE) / max(len(columns) - 1, 1)
    axes, heights = [], []
    for place, (name, column) in enumerate(columns.items()):
        ticks, ys = _axis(column)
        axes.append(Axis(name, round(SIDE + place * step, 1), ticks))
        heights.append(ys)
    last = max(len(drawn) - 1, 1)
    lines = []
    for row, trial in enumerate(drawn):
        corners = (f"{axis.x} {ys[row]}" for axis, ys in zip(axes, heights, strict=True))
        lines.append(Line(trial, f"M{'L'.join(corners)}", round(1 - row / last, 3)))
    return tuple(axes), tuple(reversed(lines))


def _axis(column: Sequence[str]) -> tuple[tuple[Tick, ...], list[float]]:
    """Return the ticks of an axis, and the height of each of its values."""
    bottom = HEIGHT - BOTTOM
    try:
        numbers = [float(text) for text in column]
    except ValueError:
        numbers = []
    if not numbers or not all(map(drawable, numbers)):
        known = sorted(set(column))
        gap = (bottom - TOP) / max(len(known) - 1, 1)
        at = {text: round(bottom - place * gap, 1) for place, text in enumerate(known)}
        return tuple(Tick(at[text], text) for text in known), [at[text] for text in column]
    is_logarithmic = min(numbers) > 0 and max(numbers) / min(numbers) >= _WIDE
    places = [math.log10(number) if is_logarithmic else number for number in numbers]
    scale, ticks = value_scale(min(places), max(places), bottom, TOP)
    distinct = dict(zip(places, numbers, strict=True))
    if len(distinct) <= _FEW:
        ticks = [Tick(scale(place), f"{number:.4g}") for place, number in distinct.items()]
    elif is_logarithmic:
        ticks = [replace(tick, label=f"{10 ** float(tick.label):.3g}") for tick in ticks]
    return tuple(ticks), [scale(place) for place in places]


def _progress(sweep: SweepTrials, drawn: Sequence[Trial]) -> Chart:
    """Return the chart of the best value so far, with a dot for each trial."""
    ended = sorted(drawn, key=lambda trial: (trial.record.ended or math.inf, trial.number))
    best = max if sweep.maximize else min
    so_far: list[Point] = []
    each = [Point(place, trial.value or 0.0, 0.0) for place, trial in enumerate(ended, start=1)]
    for point, trial in zip(each, ended, strict=True):
        if trial.record.status is Status.COMPLETED:
            so_far.append(replace(point, value=best([point.value, *(before.value for before in so_far[-1:])])))
    curves = [Curve("best so far", "", so_far or each), Curve("trial", "", each)]
    chart = make_chart(sweep.metric, sweep.record.name, curves)
    line, points = chart.series
    assert chart.y is not None
    dots = tuple(
        (chart.x(point.step), chart.y(point.value), f"trial {trial.number}: {point.value:g}")
        for point, trial in zip(each, ended, strict=True)
    )
    series = (replace(line, dots=()), replace(points, path="", dots=dots))
    return replace(chart, x_label="trials that ended", series=series)
