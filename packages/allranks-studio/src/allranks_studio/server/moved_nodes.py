"""Where the user has moved the nodes of documents: a file in the workspace, the only state that the studio keeps."""

import contextlib
import json
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.workspace import write_file
from allranks_studio.server.folders import Folder
from allranks_studio.server.positions import Positions

FILE = "studio.json"


def saved(folder: Folder, path: str) -> Positions:
    """Return where the user has moved nodes of a document, by path; nothing if the file is damaged."""
    with contextlib.suppress(ValueError):
        return _positions(_documents(folder.workspace.root / FILE).get(path, {}))
    return {}


def move(folder: Folder, path: str, positions: Any) -> dict[str, Any]:
    """Answer POST /api/document/positions: save where the user has moved nodes. Without any, all are where the layout
    places them again."""
    folder.file(path)
    file = folder.workspace.root / FILE
    try:
        moved = _positions(positions)
    except ValueError:
        raise InputError(Problem("parameter positions", "it has other values", "[x, y] by path")) from None
    documents = {**_documents(file), path: {**saved(folder, path), **moved} if moved else {}}
    folder.workspace.make()
    write_file(file, json.dumps({"positions": {name: places for name, places in documents.items() if places}}), 0o600)
    return {}


def _documents(file: Path) -> dict[str, Any]:
    """Return what the file has for each document; nothing if there is none, or it is damaged."""
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return dict(json.loads(file.read_text(encoding="utf-8"))["positions"])
    return {}


def _positions(value: Any) -> Positions:
    """Return positions by path. Raise ValueError if the value is something else."""

    def is_place(each: Any) -> bool:
        return isinstance(each, list) and [type(n) in (int, float) and abs(n) < 1e6 for n in each] == [True, True]

    if not isinstance(value, dict) or not all(map(is_place, value.values())):
        raise ValueError
    return {name: (round(x), round(y)) for name, (x, y) in value.items()}
