"""Curves and resource usage, thinned to what a screen shows."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from allranks.history import curves as history
from allranks.history import stored
from allranks.history.records import RunRecord
from allranks.history.usage import Sample
from allranks_studio.server.answers import finite
from allranks_studio.server.folders import Folder

_BUDGET = 150_000
"""About the maximum points that are read for an answer."""
_WIDTH = 300
"""Pixels of a chart."""


def curves(folder: Folder, runs: list[str], step: str = "") -> list[dict[str, Any]]:
    """Answer GET /api/curves."""
    found = list[dict[str, Any]]()
    with folder.store() as store:
        for run in runs:
            steps = [step] if step else store.measured_steps(run)
            for each in steps:
                part = store.part_of_curves(run, each, max(_BUDGET // len(runs) // len(steps), 256))
                found += [_curve(run, each, metric, history.thin(part[metric], _WIDTH)) for metric in part]
    return found


def _curve(run: str, step: str, metric: str, points: Sequence[tuple[int, float, float]]) -> dict[str, Any]:
    x, y, time = zip(*points, strict=True)
    named = {"run": run, "step": step, "metric": metric, "family": history.family(metric)}
    return {**named, "x": x, "y": list(map(finite, y)), "time": time}


def usage(folder: Folder, record: RunRecord, step: str) -> list[dict[str, Any]]:
    """Answer GET /api/usage."""
    stored.load_usage(folder.workspace, record)
    found = record.find(step)
    return [_instance(number, samples) for number, samples in sorted(found.usage.items())] if found else []


def _instance(number: int, samples: Sequence[Sample]) -> dict[str, Any]:
    gpus = [[used.gpu for used in sample.ranks.values() if used.gpu is not None] for sample in samples]
    return {
        "instance": number,
        "time": [sample.time for sample in samples],
        "cpu": [None, *(_cores(before, sample) for before, sample in pairwise(samples))],
        "memory": [sum(used.memory for used in sample.ranks.values()) for sample in samples],
        "gpu": [round(sum(each) / len(each), 1) if each else None for each in gpus],
    }


def _cores(before: Sample, sample: Sample) -> float | None:
    """Return the percent of a core that was used between two samples."""
    used = [sample.ranks[rank].cpu - before.ranks[rank].cpu for rank in sample.ranks if rank in before.ranks]
    seconds = sample.time - before.time
    return round(100 * sum(used) / seconds, 1) if used and seconds > 0 else None
