"""The charts of a run: one per family of metrics of a step, and one per metric of a loop's iterations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from allranks.runs.curves import best, families
from allranks.runs.formatting import count
from allranks.runs.nested import in_every_iteration
from allranks.runs.page.chart import SERIES, Chart, Curve, charts, drawing_cost, make_chart
from allranks.runs.records import StepRecord

_SHOWN = 48
"""Maximum charts that are shown; the others are folded."""
_BUDGET = 120_000
"""Maximum points of a page's charts, as counted by `drawing_cost`."""


@dataclass(frozen=True)
class Charts:
    """The charts of a page. left_out: a line about the curves that do not fit on the page"""

    shown: tuple[Chart, ...]
    folded: tuple[Chart, ...]
    left_out: str = ""

    @property
    def summary(self) -> str:
        return f"… {count(len(self.folded), 'more chart')}"


def shared_charts(steps: Iterable[StepRecord]) -> Charts:
    """Return the charts of the steps.

    A step in several iterations of a loop has one chart per metric, with at most SERIES curves: of the first iteration,
    the best and the last ones. The curves of the others are folded.
    """
    by_path: dict[str, list[StepRecord]] = {}
    for step in steps:
        if step.metrics:
            by_path.setdefault(in_every_iteration(step.name), []).append(step)
    first: list[Chart] = []
    others: list[Chart] = []
    budget = _BUDGET
    left_out = 0
    postponed: list[tuple[str, str, list[StepRecord]]] = []
    for path, iterations in by_path.items():
        if len(iterations) == 1:
            cost = drawing_cost(iterations[0])
            if cost > budget:
                left_out += sum(len(curve) > 1 for curve in iterations[0].metrics.values())
                continue
            budget -= cost
            first += charts(iterations[0])
            continue
        for name in _names(iterations):
            curves = [step for step in iterations if len(step.metrics.get(name, ())) > 1]
            picked = _picked(name, curves)
            shown = {step.name for step in picked}
            rest = [step for step in curves if step.name not in shown]
            if picked:
                first.append(_iterations(path, name, picked))
                budget -= sum(drawing_cost(step, name) for step in picked)
            postponed += [(path, name, rest[start : start + SERIES]) for start in range(0, len(rest), SERIES)]
    for path, name, part in postponed:
        cost = sum(drawing_cost(step, name) for step in part)
        if cost > budget:
            left_out += len(part)
            continue
        budget -= cost
        others.append(_iterations(path, name, part))
    left_out_text = f"… {count(left_out, 'more curve')} without a chart" if left_out else ""
    return Charts(tuple(first[:_SHOWN]), (*first[_SHOWN:], *others), left_out_text)


def _names(same: Sequence[StepRecord]) -> list[str]:
    """Return the metrics of the steps, grouped by family."""
    metrics = {name: points for step in same for name, points in step.metrics.items()}
    return [name for names in families(metrics).values() for name in names]


def _picked(name: str, steps: Sequence[StepRecord]) -> list[StepRecord]:
    """Return the steps with the most relevant curves, in their order."""
    if len(steps) <= SERIES:
        return list(steps)
    best_points = {
        index: point for index, step in enumerate(steps) if (point := best(name, step.metrics[name])) is not None
    }
    best_point = best(name, list(best_points.values()))
    indexes = {0, *(index for index, point in best_points.items() if point is best_point)}
    indexes |= set(range(len(steps) - (SERIES - len(indexes)), len(steps)))
    return [steps[index] for index in sorted(indexes)]


def _iterations(path: str, name: str, steps: Sequence[StepRecord]) -> Chart:
    ends = _endings([step.name for step in steps])
    curves = [Curve(end, name, step.metrics[name]) for end, step in zip(ends, steps, strict=True)]
    return make_chart(name, path, curves)


def _endings(paths: Sequence[str]) -> list[str]:
    """Return the parts that distinguish the paths: ``[2]`` of ``loop[2].train``; the whole paths if those are not
    unique."""
    first, last = min(paths), max(paths)
    start = next((index for index, (left, right) in enumerate(zip(first, last, strict=False)) if left != right), 0)
    start = first.rfind("[", 0, start + 1)
    if start < 0:
        return list(paths)
    ends = [f"[{path[start + 1 :].partition(']')[0]}]" for path in paths]
    return ends if len(set(ends)) == len(ends) else list(paths)
