"""All runs of a folder, in columns."""

import json
import sqlite3
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from allranks.history import locks
from allranks.history.curves import buckets, headline
from allranks.history.formatting import elapsed
from allranks.history.records import Execution, Point, RunRecord, Status, StepRecord
from allranks.history.store import Store
from allranks_studio.server.answers import Call, finite
from allranks_studio.server.folders import Folder

MOST_SPARKLINES = 200
_SPARKLINE = 24
"""Values of a sparkline."""
_PART = 1500
"""About the maximum points of a step that are read for a sparkline."""
_LONGEST = 200
"""Maximum characters of an input in the table."""


class _Row(NamedTuple):
    name: str
    status: str
    trigger: str
    created: float
    seconds: float | None
    metrics: Mapping[str, float | None]
    inputs: Mapping[str, str]
    job: str


class RunTable:
    """The rows of a folder. A record that has not changed is not read again."""

    def __init__(self) -> None:
        self._rows: dict[str, tuple[int, _Row]] = {}
        self.jobs: dict[str, str] = {}
        """The ids of runs by the names of their jobs, as of the last reading."""

    def columns(self, folder: Folder) -> dict[str, Any]:
        """Return the columns of api.ts's Runs. A run whose record is damaged is left out."""
        rows: dict[str, tuple[int, _Row]] = {}
        found: dict[str, _Row] = {}
        if folder.workspace.database.exists():
            with Store(folder.workspace.database, reads=True) as store:
                for identity, text in store.run_texts():
                    known = self._rows.get(identity)
                    row = known[1] if known and known[0] == hash(text) else _row(identity, text)
                    if row is not None:
                        rows[identity] = hash(text), row
                        found[identity] = _with_true_state(row, identity, store, folder)
        self._rows = rows
        self.jobs = {row.job: identity for identity, row in found.items()}
        columns = {name: [getattr(row, name) for row in found.values()] for name in _Row._fields[:5]}
        tables = {
            kind: {
                name: [getattr(row, kind).get(name) for row in found.values()]
                for name in dict.fromkeys(name for row in found.values() for name in getattr(row, kind))
            }
            for kind in ("metrics", "inputs")
        }
        return {"id": list(found), **columns, **tables}


def _row(identity: str, text: str) -> _Row | None:
    try:
        record = json.loads(text)
        executions = [Execution(each["started"], each.get("ended")) for each in record.get("executions", ())]
        run = RunRecord(identity, record["name"], record["display_name"], record["source"], record["instances"])
        run.status, run.created = Status(record["status"]), record["created"]
        run.ended, run.executions = record["ended"], executions
        trigger = "manual"
        if record.get("trigger_time") is not None:
            trigger = record.get("job_name", "").rpartition("-")[0] or "schedule"
        return _Row(
            run.display_name or run.name,
            str(run.status),
            trigger,
            run.created,
            elapsed(run, run.created) if run.status.ended else None,
            {name: finite(value) for name, value in record.get("results", {}).items()},
            {name: str(value)[:_LONGEST] for name, value in record["inputs"].items()},
            record.get("job_name", ""),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _with_true_state(row: _Row, identity: str, store: Store, folder: Folder) -> _Row:
    """Return the row of a run whose engine has died as Interrupted."""
    if Status(row.status).ended or locks.holder(folder.workspace.run_folder(identity)) is not None:
        return row
    try:
        newest = store.run(identity, curves=False)  # it may have ended since its record was read
    except sqlite3.DatabaseError:
        return row
    if newest.submitted is not None:
        return row
    status = newest.status if newest.status.ended else Status.INTERRUPTED
    return row._replace(status=str(status), seconds=elapsed(newest, time.time()) if newest.ended else None)


def runs(call: Call) -> dict[str, Any]:
    """Answer GET /api/runs."""
    return call.studio.table(call.folder).columns(call.folder)


def sparklines(call: Call) -> dict[str, Any]:
    """Answer GET /api/sparklines: the curves of the main metric of runs, as few values."""
    folder, found = call.folder, dict[str, Any]()
    names = call.texts("runs", MOST_SPARKLINES)
    if not folder.workspace.database.exists():
        return {}
    with Store(folder.workspace.database, reads=True) as store:
        for run in names:
            steps = [_step(store, run, name) for name in store.measured_steps(run)]
            for step, metric, _ in headline([step for step in steps if not step.is_trial], 1):
                values = [finite(value) for value in buckets(step.metrics[metric], _SPARKLINE)]
                found[run] = {"metric": metric, "values": [value for value in values if value is not None]}
    return found


def _step(store: Store, run: str, name: str) -> StepRecord:
    """Return a step with a part of its curves, without single values."""
    step = StepRecord(name, name, "", "none", 1, 1)
    for metric, x, value, moment in store.part_of_curves(run, name, _PART):
        step.metrics.setdefault(metric, []).append(Point(x, float("nan") if value is None else value, moment))
    step.metrics = {metric: points for metric, points in step.metrics.items() if len(points) > 1}
    return step
