"""A placeholder folder for a model that does not exist.

It contains a file, because Azure ML's storage holds only files: an empty folder does not exist there.
"""

from __future__ import annotations

from pathlib import Path

from allranks_steps.json_files import write_json

FILE = "no_model.json"


def write(folder: Path, reason: str) -> None:
    """Make the folder a placeholder. reason: why there is no model."""
    write_json(folder / FILE, {"reason": reason})


def stands_in(folder: Path) -> bool:
    """Return whether the folder is a placeholder for a model that does not exist."""
    return (folder / FILE).is_file()
