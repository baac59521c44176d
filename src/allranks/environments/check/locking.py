"""How the files of pinned packages are written."""

from __future__ import annotations

from pathlib import Path


def lock_command(folder: Path) -> str:
    """Return the command that pins the packages of an environment's requirements.in."""
    if (folder.parent / "lock.sh").exists():
        return f"environments/lock.sh {folder.name}"
    return f"uv pip compile --generate-hashes {folder / 'requirements.in'} --output-file {folder / 'requirements.txt'}"
