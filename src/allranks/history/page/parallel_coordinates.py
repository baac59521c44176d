"""Draw the trials of a sweep as lines through parallel axes: one for each parameter, and one for the metric."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from allranks.history.nested import SweepTrials, Trial
from allranks.history.page.chart import Tick, drawable, value_scale
from allranks.text import number

HEIGHT, TOP, BOTTOM = 260, 30, 10
_WIDTH = 1040.0
_LETTER, _GAP = 6.6, 26
"""Pixels of a letter of a label, and beside a label."""
_LINES = 300
"""Maximum trials: the best ones."""
_WIDE = 100.0
"""Ratio of the ends of an axis from which on it is logarithmic."""
_FEW = 5
"""Maximum numbers on an axis that are labelled themselves."""


class Axis(NamedTuple):
    """An axis with its labels on its left. x: in pixels"""

    name: str
    x: float
    ticks: tuple[Tick, ...]


class Line(NamedTuple):
    """A trial. path: the data of an SVG path. share: 0 for the worst value of the metric, 1 for the best one"""

    trial: Trial
    path: str
    share: float


class ParallelCoordinates(NamedTuple):
    """The picture. lines: the best trial last, above the others"""

    axes: tuple[Axis, ...]
    lines: tuple[Line, ...]
    width: float


def parallel_coordinates(sweep: SweepTrials) -> ParallelCoordinates | None:
    """Return the picture of the sweep; None with fewer than two trials that have a value. All labels are whole."""
    drawn = [trial for trial in sweep.ranking if trial.value is not None and drawable(trial.value)][:_LINES]
    if len(drawn) < 2:
        return None
    columns = {name: [trial.values[place] for trial in drawn] for place, name in enumerate(sweep.parameters)}
    columns[sweep.metric] = [str(trial.value) for trial in drawn]
    scales = [_axis(column) for column in columns.values()]
    letters = [
        max(len(name), *(len(tick.label) for tick in scale[0])) for name, scale in zip(columns, scales, strict=True)
    ]
    needed = [_LETTER * count + _GAP for count in letters]
    spare = max(_WIDTH - sum(needed), 0.0) / max(len(needed) - 1, 1)
    xs = [round(sum(needed[: place + 1]) + place * spare, 1) for place in range(len(needed))]
    axes = tuple(Axis(name, x, scale[0]) for name, x, scale in zip(columns, xs, scales, strict=True))
    lines = []
    for row, trial in enumerate(drawn):
        corners = (f"{x} {heights[row]}" for x, (_, heights) in zip(xs, scales, strict=True))
        lines.append(Line(trial, f"M{'L'.join(corners)}", round(1 - row / (len(drawn) - 1), 3)))
    return ParallelCoordinates(axes, tuple(reversed(lines)), xs[-1] + 10)


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
    places = [math.log10(each) if is_logarithmic else each for each in numbers]
    scale, ticks = value_scale(min(places), max(places), bottom, TOP)
    distinct = dict(zip(places, numbers, strict=True))
    if len(distinct) <= _FEW:
        ticks = [Tick(scale(place), number(each)) for place, each in distinct.items()]
    elif is_logarithmic:
        ticks = [tick._replace(label=f"{10 ** float(tick.label):.2g}") for tick in ticks]
    return tuple(ticks), [scale(place) for place in places]
