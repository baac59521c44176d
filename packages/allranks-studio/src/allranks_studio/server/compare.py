"""What differs between runs: their inputs, their metrics, and what the steps of the first two depend on."""

import difflib
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from allranks import differences
from allranks.errors import InputError
from allranks.history import stored
from allranks.history.records import RunRecord
from allranks.secrets import redact
from allranks.workspace import Workspace
from allranks_studio.server.answers import finite
from allranks_studio.server.folders import Folder
from allranks_studio.server.runs import columns

_MOST_LINES = 2000
"""Maximum lines of the differences in a file."""


def compare(folder: Folder, runs: list[str]) -> dict[str, Any]:
    """Answer GET /api/compare."""
    records = [stored.run(folder.workspace, run, curves=False) for run in runs]
    with folder.store() as store:
        metrics = [
            {f"{step}/{name}": finite(value) for step, values in last.items() for name, value in values.items()}
            for last in (store.last_values(record.id) for record in records)
        ]
    inputs = columns([record.inputs for record in records])
    causes, code = _causes(folder.workspace, records[:2]) if len(records) > 1 else ([], [])
    return {
        "runs": [record.id for record in records],
        "inputs": {name: values for name, values in inputs.items() if len(set(values)) > 1},
        "metrics": columns(metrics),
        "causes": causes,
        "code": code,
    }


def _causes(workspace: Workspace, records: Sequence[RunRecord]) -> tuple[list[dict[str, str]], list[dict[str, Any]]]:
    """Return the differences in what the steps depend on, and in their code; none if a plan cannot be read."""
    try:
        before, after = (differences.side(workspace, record) for record in records)
    except InputError:
        return [], []
    causes, code, seen = list[dict[str, str]](), list[dict[str, Any]](), set[tuple[Path, ...]]()
    for cause in differences.compare(before, after).causes:
        kind, _, name = cause.what.partition(" ")
        folders = [step.code.folder for side in (before, after) if (step := side.step(cause.step)) and step.code]
        files = tuple(Path(folder, name) for folder in folders) if kind == "file" else ()
        first, second = map(_lines, files) if len(files) == 2 else (None, None)
        if first is None or second is None:
            causes.append(vars(cause))
        elif files not in seen:  # steps may share their code
            seen.add(files)
            unified = difflib.unified_diff(first, second, before.run.id, after.run.id, lineterm="")
            lines = [redact(line) for line in islice(unified, _MOST_LINES)]
            code.append({"step": cause.step, "file": name, "lines": lines})
    return causes, code


def _lines(path: Path) -> list[str] | None:
    """Return the lines of a text file, none of a missing one; None if it is large or not a text."""
    try:
        small = path.stat().st_size <= differences.LONGEST_FILE
        return path.read_text(encoding="utf-8").splitlines() if small else None
    except FileNotFoundError:
        return []
    except (OSError, ValueError):
        return None
