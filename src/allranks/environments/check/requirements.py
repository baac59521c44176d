"""Read the files of pinned packages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_NAME = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(\[[^\]]*\])?\s*(.*)")
_PIN = re.compile(r"==\s*([^\s;\\]+)$")


@dataclass(frozen=True)
class Pin:
    """One package of a file. version: None if it is not pinned by ==; hashed: whether it has a checksum."""

    name: str
    version: str | None
    hashed: bool
    text: str
    path: Path
    line: int


def files(folder: Path) -> tuple[Path, ...]:
    """Return the files that an environment installs from."""
    return tuple(sorted((*folder.glob("requirements*.txt"), *folder.glob("device-*.txt"))))


def pins(path: Path) -> Iterator[Pin]:
    """Yield the packages of a file, in its order."""
    text, first = "", 0
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        stripped = line.split(" #")[0].strip()
        if not text and (not stripped or stripped.startswith(("#", "-"))):
            continue
        first = first or number
        text += " " + stripped.rstrip("\\").strip()
        if not stripped.endswith("\\"):
            yield _pin(text.strip(), path, first)
            text, first = "", 0


def lock_command(folder: Path) -> str:
    """Return the command that pins the packages of an environment's requirements.in."""
    if (folder.parent / "lock.sh").exists():
        return f"environments/lock.sh {folder.name}"
    return f"uv pip compile --generate-hashes {folder / 'requirements.in'} --output-file {folder / 'requirements.txt'}"


def normal(name: str) -> str:
    """Return the normalized name, which is the same for all spellings."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _pin(text: str, path: Path, line: int) -> Pin:
    requirement = text.split("--hash=")[0].strip()
    match = _NAME.match(requirement)
    name, bounds = (match[1], match[3].split(";")[0].strip()) if match else (requirement, "")
    version = _PIN.match(bounds)
    return Pin(normal(name), version[1] if version else None, "--hash=" in text, requirement, path, line)
