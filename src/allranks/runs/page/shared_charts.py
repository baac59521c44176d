"""Which curves of a run share a chart: of one step a family of metrics, of a loop's iterations the same metric."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from allranks.runs.curves import best, families
from allranks.runs.formatting import count
from allranks.runs.nested import in_every_iteration
from allranks.runs.page.chart import SERIES, Chart, Curve, charts, drawing_cost, make_chart
from allranks.runs.records import StepRecord

_SHOWN = 48
"""Charts that are shown; others are folded."""
_BUDGET = 120_000
"""Points of a page's charts, as `drawing_cost` counts them."""


@dataclass(frozen=True)
class Charts:
    """The charts of a page. left_out: a line on the curves for which the page has no room"""

    shown: tuple[Chart, ...]
    folded: tuple[Chart, ...]
    left_out: str = ""

    @property
    def summary(self) -> str:
        return f"… {count(len(self.folded), 'more chart')}"


def shared_charts(steps: Iterable[StepRecord]) -> Charts:
    """Return the charts of the steps. The same step of several iterations of a loop has one chart a metric, with a
    handful of curves: of the first iteration, the best and the last ones. The curves of the others are folded.
    """
    together: dict[str, list[StepRecord]] = {}
    for step in steps:
        if step.metrics:
            together.setdefault(in_every_iteration(step.name), []).append(step)
    first: list[Chart] = []
    others: list[Chart] = []
    left = _BUDGET
    left_out = 0
    postponed: list[tuple[str, str, list[StepRecord]]] = []
    for path, same in together.items():
        if len(same) == 1:
            cost = drawing_cost(same[0])
            if cost > left:
                left_out += sum(len(curve) > 1 for curve in same[0].metrics.values())
                continue
            left -= cost
            first += charts(same[0])
            continue
        for name in _names(same):
            curves = [step for step in same if len(step.metrics.get(name, ())) > 1]
            picked = _picked(name, curves)
            shown = {step.name for step in picked}
            rest = [step for step in curves if step.name not in shown]
            if picked:
                first.append(_iterations(path, name, picked))
                left -= sum(drawing_cost(step, name) for step in picked)
            postponed += [(path, name, rest[start : start + SERIES]) for start in range(0, len(rest), SERIES)]
    for path, name, part in postponed:
        cost = sum(drawing_cost(step, name) for step in part)
        if cost > left:
            left_out += len(part)
            continue
        left -= cost
        others.append(_iterations(path, name, part))
    more = f"… {count(left_out, 'more curve')} without a chart" if left_out else ""
    return Charts(tuple(first[:_SHOWN]), (*first[_SHOWN:], *others), more)


def _names(same: Sequence[StepRecord]) -> list[str]:
    """Return the metrics of the steps, those of a family side by side."""
    metrics = {name: points for step in same for name, points in step.metrics.items()}
    return [name for names in families(metrics).values() for name in names]


def _picked(name: str, steps: Sequence[StepRecord]) -> list[StepRecord]:
    """Return the steps whose curves say most, in their order."""
    if len(steps) <= SERIES:
        return list(steps)
    tops = {place: point for place, step in enumerate(steps) if (point := best(name, step.metrics[name])) is not None}
    top = best(name, list(tops.values()))
    places = {0, *(place for place, point in tops.items() if point is top)}
    places |= set(range(len(steps) - (SERIES - len(places)), len(steps)))
    return [steps[place] for place in sorted(places)]


def _iterations(path: str, name: str, steps: Sequence[StepRecord]) -> Chart:
    ends = _endings([step.name for step in steps])
    curves = [Curve(end, name, step.metrics[name]) for end, step in zip(ends, steps, strict=True)]
    return make_chart(name, path, curves)


def _endings(paths: Sequence[str]) -> list[str]:
    """Return what tells the paths apart: ``[2]`` of ``loop[2].train``; the whole paths where that is not enough."""
    first, last = min(paths), max(paths)
    start = next((place for place, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), 0)
    start = first.rfind("[", 0, start + 1)
    if start < 0:
        return list(paths)
    ends = [f"[{path[start + 1 :].partition(']')[0]}]" for path in paths]
    return ends if len(set(ends)) == len(ends) else list(paths)
