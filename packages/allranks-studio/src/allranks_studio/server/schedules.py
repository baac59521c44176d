"""The schedules of a folder: those that its files declare, and what its scheduler has done."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from allranks.errors import InputError, Problem
from allranks.scheduler.ledger import Entry, Firing
from allranks.scheduler.paths import SchedulerPaths
from allranks.schedules.finding import FOLDER
from allranks.schedules.triggers import firings
from allranks_studio.server.answers import Call
from allranks_studio.server.folders import Folder
from allranks_studio.server.runs import RunTable

_NEXT = 5
_PAST = 50
PATIENCE = 60.0
"""Seconds in which the files of the schedules must have been read."""


def schedules(call: Call) -> list[dict[str, Any]]:
    """Answer GET /api/schedules."""
    folder = call.folder
    paths = SchedulerPaths(folder.workspace)
    entries, now = paths.entries(), datetime.now(UTC)
    table = call.studio.table(folder)
    table.columns(folder)
    found = []
    for row in _listed(folder):
        entry = entries.get(row["name"])
        past = paths.read(lambda ledger, name=row["name"]: ledger.firings(name)[:_PAST])  # type: ignore[misc]
        found.append(
            {
                "name": row["name"],
                "file": row["declared_in"] or (entry.source if entry else ""),
                "trigger": row["on_change"] or row["trigger"] or "",
                "enabled": row["state"] == "enabled",
                "next": _next(row, entry, now),
                "history": [_firing(each, table) for each in past],
                "scheduler": row["scheduler"],
            }
        )
    return found


def _listed(folder: Folder) -> Sequence[Mapping[str, Any]]:
    """Return the schedules as the command lists them, in a process of its own: declaring them is code of the user."""
    if not (folder.path / FOLDER).is_dir() and not SchedulerPaths(folder.workspace).ledger.exists():
        return []
    command = [sys.executable, "-P", "-m", "allranks.cli.main", "schedules", "list", "--json"]
    command += ["--folder", str(folder.workspace.root)]
    try:
        done = subprocess.run(
            command, cwd=folder.path, capture_output=True, encoding="utf-8", timeout=PATIENCE, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise InputError(Problem(str(folder.path / FOLDER), f"it was not read within {PATIENCE:g} s")) from None
    if done.returncode:
        raise InputError(Problem(str(folder.path / FOLDER), done.stderr.strip().removeprefix("error: ")[-2000:]))
    return list(json.loads(done.stdout))


def _next(row: Mapping[str, Any], entry: Entry | None, now: datetime) -> list[float]:
    if row["next"] is None:
        return []
    if entry is None:
        return [datetime.fromisoformat(row["next"]).timestamp()]
    return [each.timestamp() for each in islice(firings(entry.trigger, now, entry.created), _NEXT)]


def _firing(firing: Firing, table: RunTable) -> dict[str, Any]:
    return {
        "time": firing.at.timestamp(),
        "status": firing.status or "Running",
        "reason": firing.reason,
        "run": table.jobs.get(firing.run, ""),
    }
