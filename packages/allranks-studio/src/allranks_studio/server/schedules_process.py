"""The process that reads the schedules of a folder: the files that declare them are programs of the user.

Its arguments are the folder and the workspace. It prints the schedules, or the problems, as JSON.
"""

import json
import os
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from allranks.cli.views.schedules import listed
from allranks.errors import InputError
from allranks.scheduler.ledger import Firing
from allranks.scheduler.paths import SchedulerPaths
from allranks.schedules.finding import find_schedules
from allranks.schedules.triggers import firings
from allranks.sdk.session import session
from allranks.workspace import Workspace

_NEXT = 5
_PAST = 50


def schedules(workspace: str) -> list[dict[str, Any]]:
    """Return the schedules that the current folder's files declare, and those that LocalClient has created."""
    paths, now, found = SchedulerPaths(Workspace(Path(workspace))), datetime.now(UTC), []
    entries, pid = paths.entries(), paths.scheduler()
    with session(client=False):
        declared = {each.name: each for each in (*find_schedules(required=False), *paths.created())}
    for name, own in sorted(declared.items()):
        entry = entries.get(name)
        row, _ = listed(name, own, entry or own, now)
        following = firings(own.trigger, now, entry.created if entry else now) if row["next"] else ()
        item = {
            "name": name,
            "file": own.where,
            "trigger": row["on_change"] or row["trigger"],
            "enabled": row["state"] == "enabled",
            "next": [each.timestamp() for each in islice(following, _NEXT)],
            "history": list(map(_firing, paths.read(lambda ledger, name=name: ledger.firings(name))[:_PAST])),  # type: ignore[misc]
            "scheduler": pid,
        }
        found.append(item)
    return found


def _firing(firing: Firing) -> dict[str, Any]:
    status = firing.status or "Running"
    return {"time": firing.at.timestamp(), "status": status, "reason": firing.reason, "run": firing.run}


def main() -> None:
    """Print the schedules, or the problems."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a file prints is not an answer
    try:
        answer: dict[str, Any] = {"schedules": schedules(sys.argv[1])}
    except InputError as error:
        answer = {"problems": [asdict(problem) for problem in error.problems]}
    with answers:
        json.dump(answer, answers)
    os._exit(0)  # threads of a file may never end


if __name__ == "__main__":
    main()
