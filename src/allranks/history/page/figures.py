"""The figures of a run's page: learning curves, confusion matrices, and resource usage."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from allranks.history.curves import best, families
from allranks.history.formatting import usage_of_ranks
from allranks.history.nested import in_every_iteration
from allranks.history.page.chart import SERIES, Chart, Curve, charts, drawing_cost, make_chart
from allranks.history.records import Status, StepRecord
from allranks.text import count

LARGEST_FILE = 1 << 20
LARGEST_MATRIX = 64
_FILES = 100
"""Maximum number of a step's files in which a confusion matrix is searched for."""
_NUMBERS = 30
"""Maximum number of classes for which cells show their number."""
_SHOWN = 48
"""Maximum number of charts that are not folded."""
_CURVE_BUDGET = 120_000
"""Maximum points of a page's charts, as counted by `drawing_cost`."""


@dataclass(frozen=True)
class Confusion:
    """A confusion matrix: one row per true class, one column per predicted class."""

    step: StepRecord
    labels: tuple[str, ...]
    rows: tuple[tuple[float, ...], ...]

    @property
    def total(self) -> float:
        return sum(map(sum, self.rows))

    @property
    def right(self) -> float:
        return sum(row[index] for index, row in enumerate(self.rows))

    @property
    def numbered(self) -> bool:
        return len(self.labels) <= _NUMBERS

    def share(self, row: int, column: int) -> float:
        """Return the fraction of the true class `row` that was predicted as the class `column`."""
        total = sum(self.rows[row])
        return self.rows[row][column] / total if total else 0.0

    def recall(self, place: int) -> float | None:
        """Return the fraction of the class that was predicted correctly; None if the class does not occur."""
        total = sum(self.rows[place])
        return self.rows[place][place] / total if total else None

    def precision(self, place: int) -> float | None:
        """Return the fraction of the predictions of the class that are correct; None without predictions."""
        total = sum(row[place] for row in self.rows)
        return self.rows[place][place] / total if total else None


def confusions(step: StepRecord) -> list[Confusion]:
    """Return the matrices among the step's artifacts. Missing, incomplete and too large files are ignored."""
    names = [name for name in step.artifacts if name.endswith(".json")][:_FILES]
    matrices = (_read(step, Path(step.folder) / name) for name in names)
    return [confusion for confusion in matrices if confusion is not None]


def _read(step: StepRecord, path: Path) -> Confusion | None:
    try:
        # Reading a pipe might never end, and a file may grow before it is read.
        if not path.is_file():
            return None
        with path.open("rb") as file:
            text = file.read(LARGEST_FILE + 1)
        content = json.loads(text) if len(text) <= LARGEST_FILE else {}
        labels, matrix = content["data"]["class_labels"], content["data"]["matrix"]
        counts = [value for row in matrix for value in row]
        sizes = {len(labels), len(matrix), *map(len, matrix)}
        is_matrix = content["schema_type"] == "confusion_matrix" and isinstance(labels, list) and len(sizes) == 1
        if not is_matrix or not 0 < len(labels) <= LARGEST_MATRIX or not all(map(_is_count, counts)):
            return None
        return Confusion(step, tuple(map(str, labels)), tuple(tuple(map(float, row)) for row in matrix))
    except (OSError, ValueError, TypeError, KeyError, RecursionError, OverflowError):
        return None


def _is_count(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf


class Charts(NamedTuple):
    """The charts of a page. left_out: a line about the curves that do not fit on the page"""

    shown: tuple[Chart, ...]
    folded: tuple[Chart, ...]
    left_out: str = ""

    @property
    def summary(self) -> str:
        return f"… {count(len(self.folded), 'more chart')}"


def shared_charts(steps: Iterable[StepRecord]) -> Charts:
    """Return the charts of the steps.

    A step in several iterations of a loop has one chart per metric, with at most SERIES curves: of the first, the best
    and the last iterations.
    """
    by_path: dict[str, list[StepRecord]] = {}
    for step in steps:
        if step.metrics:
            by_path.setdefault(in_every_iteration(step.name), []).append(step)
    found: list[Chart] = []
    budget = _CURVE_BUDGET
    left_out = 0
    for path, iterations in by_path.items():
        if len(iterations) == 1:
            cost = drawing_cost(iterations[0])
            if cost > budget:
                left_out += sum(len(curve) > 1 for curve in iterations[0].metrics.values())
                continue
            budget -= cost
            found += charts(iterations[0])
            continue
        metrics = {name: points for step in iterations for name, points in step.metrics.items()}
        for name in (name for names in families(metrics).values() for name in names):
            curves = [step for step in iterations if len(step.metrics.get(name, ())) > 1]
            picked = _picked(name, curves)
            if picked:
                ends = _endings([step.name for step in picked])
                series = [Curve(end, name, step.metrics[name]) for end, step in zip(ends, picked, strict=True)]
                found.append(make_chart(name, path, series))
                budget -= sum(drawing_cost(step, name) for step in picked)
            left_out += len(curves) - len(picked)
    left_out_text = f"… {count(left_out, 'more curve')} without a chart" if left_out else ""
    return Charts(tuple(found[:_SHOWN]), tuple(found[_SHOWN:]), left_out_text)


def _picked(name: str, steps: Sequence[StepRecord]) -> list[StepRecord]:
    """Return the steps with the most relevant curves, in order."""
    if len(steps) <= SERIES:
        return list(steps)
    best_points = {
        index: point for index, step in enumerate(steps) if (point := best(name, step.metrics[name])) is not None
    }
    best_point = best(name, list(best_points.values()))
    indexes = {0, *(index for index, point in best_points.items() if point is best_point)}
    indexes |= set(range(len(steps) - (SERIES - len(indexes)), len(steps)))
    return [steps[index] for index in sorted(indexes)]


def _endings(paths: Sequence[str]) -> list[str]:
    """Return the parts that distinguish the paths: ``[2]`` of ``loop[2].train``; the whole paths if these are not
    unique."""
    first, last = min(paths), max(paths)
    start = next((index for index, (left, right) in enumerate(zip(first, last, strict=False)) if left != right), 0)
    start = first.rfind("[", 0, start + 1)
    if start < 0:
        return list(paths)
    ends = [f"[{path[start + 1 :].partition(']')[0]}]" for path in paths]
    return ends if len(set(ends)) == len(ends) else list(paths)


def usage_facts(step: StepRecord, now: float) -> dict[str, str]:
    """Return the known resource usage of a step. now: the end of a running step"""
    if step.reused_from:
        return {}
    used = usage_of_ranks(step, now if step.status is Status.RUNNING else None)
    seconds = [rank.cpu_seconds for rank in step.ranks if rank.cpu_seconds is not None]
    facts = {
        "mean CPU per rank": used.get("cpu"),
        "CPU time": f"{sum(seconds):,.1f} s" if seconds else None,
        "peak memory per rank": used.get("memory"),
        "peak GPU memory per rank": used.get("gpu memory"),
    }
    return {name: value for name, value in facts.items() if value}
