"""Curves and resource usage, thinned to what a screen shows."""

from collections.abc import Sequence
from typing import Any

from allranks.history import curves as history
from allranks.history import stored
from allranks.history.store import Store
from allranks.history.usage import Sample
from allranks_studio.server.answers import Call, finite

MOST_RUNS = 100
_BUDGET = 150_000
"""Maximum points of an answer."""


def curves(call: Call) -> list[dict[str, Any]]:
    """Answer GET /api/curves."""
    folder, runs = call.folder, call.texts("runs", MOST_RUNS)
    width, metric, only = call.whole("width", 300, 8, 4000), call.text("metric", ""), call.text("step", "")
    found = []
    if not folder.workspace.database.exists():
        return []
    with Store(folder.workspace.database, reads=True) as store:
        for run in runs:
            for step in [only] if only else store.last_values(run):
                for name, points in store.curves(run, step).items():
                    if metric in ("", name):
                        found.append((run, step, name, points))
    width = max(min(width, _BUDGET // (4 * max(len(found), 1))), 4)
    return [_curve(run, step, name, points, width) for run, step, name, points in found]


def _curve(run: str, step: str, name: str, points: Sequence[Any], width: int) -> dict[str, Any]:
    visible = history.thin([(at, point.value) for at, point in enumerate(points)], width)
    shown = [points[int(at)] for at, _ in visible]
    return {
        "run": run,
        "step": step,
        "metric": name,
        "x": [point.step for point in shown],
        "y": [finite(point.value) for point in shown],
        "time": [round(point.time, 2) for point in shown],
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
