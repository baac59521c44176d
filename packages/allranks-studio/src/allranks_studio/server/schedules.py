"""The schedules of a folder: those that its files declare, and what its scheduler has done."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from allranks.errors import InputError, Problem
from allranks.history import stored
from allranks.scheduler.ledger import Entry, Firing
from allranks.scheduler.paths import SchedulerPaths
from allranks.schedules.finding import FOLDER
from allranks.schedules.triggers import firings
from allranks_studio.server.answers import Call
from allranks_studio.server.folders import Folder

PATIENCE = 60.0
"""Seconds in which the files must have been read."""
_NEXT = 5
_PAST = 50


def schedules(call: Call) -> list[dict[str, Any]]:
    """Answer GET /api/schedules."""
    folder, now = call.folder, datetime.now(UTC)
    paths = SchedulerPaths(folder.workspace)
    entries = paths.entries()
    records = stored.runs(folder.workspace, steps=False, unreadable=lambda *_: None)
    runs = {record.job_name: record.id for record in records}
    return [
        {
            "name": row["name"],
            "file": row["declared_in"] or "",
            "trigger": row["on_change"] or row["trigger"] or "",
            "enabled": row["state"] == "enabled",
            "next": _next(row, entries.get(row["name"]), now),
            "history": [
                {
                    "time": firing.at.timestamp(),
                    "status": firing.status or "Running",
                    "reason": firing.reason,
                    "run": runs.get(firing.run, ""),
                }
                for firing in _firings(paths, row["name"])
            ],
            "scheduler": row["scheduler"],
        }
        for row in _listed(folder, bool(entries))
    ]


def _firings(paths: SchedulerPaths, name: str) -> Sequence[Firing]:
    return paths.read(lambda ledger: ledger.firings(name)[:_PAST])


def _listed(folder: Folder, are_known: bool) -> list[dict[str, Any]]:
    """Return the schedules as the command lists them, in a process of its own: files that declare them are programs.

    are_known: whether the scheduler knows schedules. Without any, the command needs a file that declares one
    """
    files = [file for file in (folder.path / FOLDER).glob("[!._]*.*") if file.suffix in (".py", ".yml", ".yaml")]
    if not are_known and not any(
        word in file.read_bytes() for file in files for word in (b"JobSchedule", b"create_job")
    ):
        return []
    command = [sys.executable, "-P", "-m", "allranks.cli.main", "schedules", "list", "--json"]
    command += ["--folder", str(folder.workspace.root)]
    where = str(folder.path / FOLDER)
    try:
        done = subprocess.run(
            command, cwd=folder.path, capture_output=True, encoding="utf-8", timeout=PATIENCE, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise InputError(Problem(where, f"its files were not read within {PATIENCE:g} s")) from None
    if done.returncode:
        raise InputError(Problem(where, done.stderr.strip()[-2000:]))
    return list(json.loads(done.stdout))


def _next(row: Mapping[str, Any], entry: Entry | None, now: datetime) -> list[float]:
    """Return the next firings. Those after the next one are known of a schedule that a scheduler has read."""
    if row["next"] is None or entry is None:
        return [datetime.fromisoformat(row["next"]).timestamp()] if row["next"] else []
    return [each.timestamp() for each in islice(firings(entry.trigger, now, entry.created), _NEXT)]
