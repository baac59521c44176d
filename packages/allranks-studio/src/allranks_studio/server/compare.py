"""What differs between runs: their inputs, their metrics, and what the steps of the first two depend on."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from allranks import differences
from allranks.differences import Side
from allranks.errors import InputError
from allranks.history import stored
from allranks.history.records import RunRecord
from allranks.history.store import Store
from allranks.plan import file_tree
from allranks.secrets import redact
from allranks_studio.server.answers import Call, finite

MOST = 20
_MOST_LINES = 2000
"""Maximum lines of the differences of code."""


def compare(call: Call) -> dict[str, Any]:
    """Answer GET /api/compare."""
    workspace = call.folder.workspace
    records = [stored.run(workspace, run, curves=False) for run in call.texts("runs", MOST)]
    with Store(workspace.database, reads=True) as store:
        last = call.studio.last_values(call.folder)
        metrics = [
            {
                f"{step.name}/{name}": finite(value)
                for step in record.steps
                for name, value in last.read(store, record.id, step).items()
            }
            for record in records
        ]
    causes, code = _causes(call, records[:2]) if len(records) > 1 else ([], [])
    return {
        "runs": [record.id for record in records],
        "inputs": _differing([record.inputs for record in records]),
        "metrics": _columns(metrics),
        "causes": causes,
        "code": code,
    }


def _columns(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _differing(rows: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    return {name: values for name, values in _columns(rows).items() if len(set(values)) > 1}


def _causes(call: Call, records: Sequence[RunRecord]) -> tuple[list[dict[str, str]], list[dict[str, Any]]]:
    """Return the differences in what the steps depend on, and in their code; none if a plan cannot be read."""
    try:
        before, after = (differences.side(call.folder.workspace, record) for record in records)
    except InputError:
        return [], []
    paths = list(dict.fromkeys(step.name for record in records for step in record.steps))
    found = [each for path in paths for each in differences.causes(before, after, path)]
    code = list(_code((before, after), paths))
    texts = {(each["step"], f"file {each['file']}") for each in code}
    return [vars(each) for each in found if (each.step, each.what) not in texts], code


def _code(sides: Sequence[Side], paths: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the differing text files of the steps, each pair of folders once."""
    seen: set[tuple[str, ...]] = set()
    lines = 0
    for path in paths:
        codes = [step.code for side in sides if (step := side.step(path)) is not None and step.code is not None]
        folders = tuple(code.folder for code in codes)
        if len(codes) < 2 or codes[0].digest == codes[1].digest or folders in seen:
            continue
        seen.add(folders)
        files = [
            {each.name: each.path for each in file_tree.entries(Path(f)) if each.kind == file_tree.FILE}
            for f in folders
        ]
        for name in sorted({*files[0], *files[1]}):
            texts = [_lines(each.get(name)) for each in files]
            if texts[0] == texts[1] or None in texts or lines > _MOST_LINES:
                continue
            before, after = (side.run.id for side in sides)
            unified = difflib.unified_diff(texts[0] or [], texts[1] or [], before, after, lineterm="")
            diff = [redact(line) for line, _ in zip(unified, range(_MOST_LINES), strict=False)]
            lines += len(diff)
            yield {"step": path, "file": name, "lines": diff}


def _lines(path: Path | None) -> list[str] | None:
    """Return the lines of a text file, none of a missing one; None if it is large or not a text."""
    if path is None:
        return []
    try:
        small = path.stat().st_size <= differences.LONGEST_FILE
        return path.read_text(encoding="utf-8").splitlines() if small else None
    except (OSError, ValueError):
        return None
