"""The schedules of a folder: those that its files declare, and what its scheduler has done."""

import json
import subprocess
import sys
from typing import Any

from cattrs import structure

from allranks.errors import InputError, Problem
from allranks.schedules.finding import FOLDER
from allranks_studio.server.answers import Call
from allranks_studio.server.folders import Folder

PATIENCE = 60.0
"""Seconds in which the files must have been read."""


def schedules(call: Call) -> list[dict[str, Any]]:
    """Answer GET /api/schedules."""
    folder = call.folder
    if not (folder.path / FOLDER).is_dir() and not (folder.workspace.root / "schedules.db").exists():
        return []
    found = _read(folder)
    table = call.studio.table(folder)
    table.columns(folder)
    for schedule in found:
        for firing in schedule["history"]:
            firing["run"] = table.jobs.get(firing["run"], "")  # "" if it has not started
    return found


def _read(folder: Folder) -> list[dict[str, Any]]:
    """Return the schedules as another process reads them. Raise InputError as it does, or if it fails."""
    command = [sys.executable, "-P", "-m", "allranks_studio.server.schedules_process", str(folder.workspace.root)]
    where = str(folder.path / FOLDER)
    try:
        done = subprocess.run(
            command, cwd=folder.path, capture_output=True, encoding="utf-8", timeout=PATIENCE, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        raise InputError(Problem(where, f"its files were not read within {PATIENCE:g} s")) from None
    if done.returncode or not done.stdout:
        last = "\n".join(done.stderr.splitlines()[-3:])
        raise InputError(Problem(where, f"the process that read its files has ended: {last}"))
    answer: dict[str, Any] = json.loads(done.stdout)
    if "problems" in answer:
        raise InputError(*structure(answer["problems"], list[Problem]))
    found: list[dict[str, Any]] = answer["schedules"]
    return found
