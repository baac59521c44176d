"""The packages that the steps of a run found installed, in a file of the run's folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from allranks.runs.records import RunRecord
from allranks.runs.workspace import write_file

FILE = "packages.json"


def save(run: RunRecord, interpreter: str, versions: Mapping[str, str]) -> None:
    """Add the versions of an interpreter's packages, by name. Raise OSError if the file cannot be written."""
    path = Path(run.folder, FILE)
    found = {**load(run), interpreter: dict(versions)}
    write_file(path, json.dumps(found))


def load(run: RunRecord) -> dict[str, dict[str, str]]:
    """Return by interpreter the versions of its packages; nothing if the run has none, as on Azure ML."""
    try:
        found: dict[str, dict[str, str]] = json.loads(Path(run.folder, FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found
