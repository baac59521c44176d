"""A placeholder folder for a model that does not exist.

It contains a file, because Azure ML's storage holds only files: an empty folder does not exist there.
"""

from __future__ import annotations

import json
from pathlib import Path

FILE = "no_model.json"


def write(folder: Path, reason: str) -> None:
    """Make the folder a placeholder. reason: why there is no model."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps({"reason": reason}, indent=2) + "\n", encoding="utf-8")


def stands_in(folder: Path) -> bool:
    """Return whether the folder is a placeholder for a model that does not exist."""
    return (folder / FILE).is_file()
