"""The schedules of a folder: those that its files declare, and what its scheduler has done."""

from typing import Any

from allranks.schedules.finding import FOLDER
from allranks_studio.server import folder_process
from allranks_studio.server.answers import Call


def schedules(call: Call) -> list[dict[str, Any]]:
    """Answer GET /api/schedules."""
    folder = call.folder
    if not (folder.path / FOLDER).is_dir() and not (folder.workspace.root / "schedules.db").exists():
        return []
    found: list[dict[str, Any]] = folder_process.read(folder.path, "schedules", str(folder.workspace.root))
    table = call.studio.table(folder)
    table.columns(folder)
    for schedule in found:
        for firing in schedule["history"]:
            firing["run"] = table.jobs.get(firing["run"], "")  # "" if it has not started
    return found
