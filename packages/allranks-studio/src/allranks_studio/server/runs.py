"""All runs of a folder, in columns."""

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

from allranks.history import stored
from allranks.history.curves import buckets, headline
from allranks.history.formatting import elapsed
from allranks.history.records import Point, RunRecord, StepRecord
from allranks.history.store import Store
from allranks_studio.server.answers import finite
from allranks_studio.server.folders import Folder

_SPARKLINE = 24
"""Values of a sparkline."""
_PART = 1500
"""About the maximum points of a step that are read for a sparkline."""
_LONGEST = 200
"""Maximum characters of an input in the table."""


def runs(folder: Folder, since: int = 0) -> dict[str, Any]:
    """Answer GET /api/runs. A run whose record is damaged is left out. since: when the first one was created"""
    records, now = stored.runs(folder.workspace, since=since, steps=False, unreadable=lambda *_: None), time.time()
    return {
        "id": [run.id for run in records],
        "name": [run.display_name or run.name for run in records],
        "status": [str(run.status) for run in records],
        "trigger": [_trigger(run) for run in records],
        "created": [run.created for run in records],
        "seconds": [elapsed(run, now) if run.ended else None for run in records],
        "metrics": columns([{name: finite(value) for name, value in run.results.items()} for run in records]),
        "inputs": columns([{name: value[:_LONGEST] for name, value in run.inputs.items()} for run in records]),
    }


def _trigger(run: RunRecord) -> str:
    return "manual" if run.trigger_time is None else run.job_name.rpartition("-")[0] or "schedule"


def columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Return the values of each name in all rows; None where it is missing."""
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def sparklines(folder: Folder, runs: list[str]) -> dict[str, Any]:
    """Answer GET /api/sparklines: the curves of the main metric of runs, as few values."""
    found: dict[str, Any] = {}
    with folder.store() as store:
        for run in runs:
            steps = [_step(store, run, name) for name in store.measured_steps(run)]
            for step, metric, _ in headline([step for step in steps if not step.is_trial], 1):
                values = buckets(step.metrics[metric], _SPARKLINE)
                found[run] = {"metric": metric, "values": [value for value in values if math.isfinite(value)]}
    return found


def _step(store: Store, run: str, name: str) -> StepRecord:
    """Return a step with a part of its curves, without single values."""
    curves = store.part_of_curves(run, name, _PART).items()
    step = StepRecord(name, name, "", "none", 1, 1)
    step.metrics = {metric: [Point(*point) for point in points] for metric, points in curves if len(points) > 1}
    return step
