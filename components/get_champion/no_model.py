"""A folder that stands where a model would, and says that there is none.

An empty folder could not: on Azure ML, where storage knows files alone, a folder without any is no folder.
"""

from __future__ import annotations

import json
from pathlib import Path

FILE = "no_model.json"


def write(folder: Path, reason: str) -> None:
    """Say in the folder that there is no model, and why."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / FILE).write_text(json.dumps({"reason": reason}, indent=2) + "\n", encoding="utf-8")


def stands_in(folder: Path) -> bool:
    """Whether the folder says that there is no model."""
    return (folder / FILE).is_file()
