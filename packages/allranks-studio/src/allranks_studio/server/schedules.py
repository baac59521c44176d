"""The schedules of a folder: those that its files declare, and what its scheduler has done."""

import contextlib
import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.history import stored
from allranks.scheduler.paths import SchedulerPaths
from allranks.schedules.finding import FOLDER, find_schedules
from allranks.schedules.triggers import firings, in_words
from allranks.sdk.session import session
from allranks.workspace import Workspace
from allranks_studio.server.folders import Folder

PATIENCE = 60.0
"""Seconds in which the files must have been read."""
_NEXT = 5
_PAST = 50


def schedules(folder: Folder) -> list[dict[str, Any]]:
    """Answer GET /api/schedules, by a process of its own: files that declare them are programs."""
    command = [sys.executable, "-P", "-m", __name__, str(folder.workspace.root)]
    try:
        done = subprocess.run(
            command, cwd=folder.path, capture_output=True, encoding="utf-8", timeout=PATIENCE, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise InputError(Problem(str(folder.path / FOLDER), f"its files were not read within {PATIENCE:g} s")) from None
    if done.returncode:
        raise InputError(Problem(str(folder.path / FOLDER), done.stderr.strip()[-2000:]))
    return list(json.loads(done.stdout))


def listed(paths: SchedulerPaths) -> Iterator[dict[str, Any]]:
    """Yield the schedules of the current folder and of a workspace, as api.ts has them. Raise InputError."""
    with session(client=False):
        declared = {each.name: each for each in (*paths.created(), *find_schedules(required=False))}
    entries, scheduler, now = paths.entries(), paths.scheduler(), datetime.now(UTC)
    runs = stored.runs(paths.workspace, steps=False, unreadable=lambda *_: None)
    ids = {run.job_name: run.id for run in runs}
    for name, schedule in sorted(declared.items()):
        entry, on_change = entries.get(name), str(schedule.policy)
        enabled = entry is None or entry.enabled
        times = firings(schedule.trigger, now, entry.created if entry else now) if enabled and not on_change else ()
        past = paths.read(lambda ledger, name=name: ledger.firings(name)[:_PAST])  # type: ignore[misc]
        yield {
            "name": name,
            "file": schedule.where,
            "trigger": on_change or f"{in_words(schedule.trigger)}, {schedule.trigger.time_zone}",
            "enabled": enabled,
            "next": [each.timestamp() for each in islice(times, _NEXT)],
            "history": [
                {
                    "time": each.at.timestamp(),
                    "status": each.status or "Running",
                    "reason": each.reason,
                    "run": ids.get(each.run, ""),
                }
                for each in past
            ],
            "scheduler": scheduler,
        }


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):  # what the files print is not an answer
        try:
            found = list(listed(SchedulerPaths(Workspace(Path(sys.argv[1])))))
        except InputError as error:
            sys.exit(str(error))
    print(json.dumps(found))
