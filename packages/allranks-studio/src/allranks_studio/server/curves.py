"""Curves and resource usage, thinned to what a screen shows."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from allranks.history import curves as history
from allranks.history import stored
from allranks.history.usage import Sample
from allranks_studio.server.answers import Call, finite

Row: TypeAlias = tuple[str, int, float | None, float]
"""A point: metric, x, value, time."""

MOST_RUNS = 100
_BUDGET = 150_000
"""About the maximum points that are read for an answer."""


def curves(call: Call) -> list[dict[str, Any]]:
    """Answer GET /api/curves."""
    runs, found = call.texts("runs", MOST_RUNS), list[dict[str, Any]]()
    width, metric, only = call.whole("width", 300, 8, 4000), call.text("metric", ""), call.text("step", "")
    with call.folder.store() as store:
        for run in runs:
            steps = [only] if only else store.measured_steps(run)
            for step in steps:
                points = store.part_of_curves(run, step, max(_BUDGET // len(runs) // len(steps), 256))
                found += _curves(run, step, points, metric, width)
    return found


def _curves(run: str, step: str, points: Iterable[Row], metric: str, width: int) -> Iterator[dict[str, Any]]:
    by_metric: dict[str, list[tuple[int, float | None, float]]] = {}
    for name, x, value, time in points:
        if metric in ("", name):
            by_metric.setdefault(name, []).append((x, value, time))
    for name, rows in by_metric.items():
        if len(rows) > 4 * width:
            values = [(at, math.nan if row[1] is None else row[1]) for at, row in enumerate(rows)]
            rows = [rows[int(at)] for at, _ in history.thin(values, width)]
        yield {
            "run": run,
            "step": step,
            "metric": name,
            "family": history.family(name),
            "x": [x for x, _, _ in rows],
            "y": [finite(value) for _, value, _ in rows],
            "time": [time for _, _, time in rows],
        }


def usage(call: Call) -> list[dict[str, Any]]:
    """Answer GET /api/usage."""
    folder = call.folder
    record = stored.run(folder.workspace, call.text("run"), curves=False)
    stored.load_usage(folder.workspace, record)
    step = record.find(call.text("step"))
    return [_instance(number, samples) for number, samples in sorted(step.usage.items())] if step else []


def _instance(number: int, samples: Sequence[Sample]) -> dict[str, Any]:
    cores: list[float | None] = []
    before: Sample | None = None
    for sample in samples:
        both = [rank for rank in sample.ranks if before is not None and rank in before.ranks]
        seconds = sample.time - before.time if before is not None else 0.0
        used = sum(sample.ranks[rank].cpu - before.ranks[rank].cpu for rank in both) if before is not None else 0.0
        cores.append(round(100 * used / seconds, 1) if both and seconds > 0 else None)
        before = sample
    gpus = [[used.gpu for used in sample.ranks.values() if used.gpu is not None] for sample in samples]
    return {
        "instance": number,
        "time": [sample.time for sample in samples],
        "cpu": cores,
        "memory": [sum(used.memory for used in sample.ranks.values()) for sample in samples],
        "gpu": [round(sum(each) / len(each), 1) if each else None for each in gpus],
    }
