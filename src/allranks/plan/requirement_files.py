"""Read the packages that an environment's folder pins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml

from allranks.contract.requirements import normal
from allranks.sdk import bounded_yaml

PINNED, EXPECTED = "requirements.txt", "expect.yaml"
"""The files of an environment whose packages are all known: its lock file, and what must be true inside."""

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
    patterns = ("requirements*.txt", "device-*.txt", "libraries-*.txt")
    return tuple(sorted(path for pattern in patterns for path in folder.glob(pattern)))


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


def packages(folder: str) -> frozenset[str] | None:
    """Return the normalized names of all packages of an environment, on CPUs or GPUs.

    None if they are not known: the folder does not contain both a lock file and the expectations of
    `allranks environments verify`.
    """
    try:
        stamps = tuple(Path(folder, name).stat().st_mtime_ns for name in (PINNED, EXPECTED)) if folder else ()
        return _packages(folder, stamps) if stamps else None
    except (OSError, ValueError, yaml.YAMLError):
        return None


@lru_cache(maxsize=64)
def _packages(folder: str, _stamps: tuple[int, ...]) -> frozenset[str]:
    expected = bounded_yaml.load_file(Path(folder, EXPECTED))
    sections = expected.values() if isinstance(expected, dict) else ()
    # What the build compiles, such as Horovod, is in no lock file.
    proved = {name for probes in sections if isinstance(probes, dict) for name in probes.get("packages") or ()}
    pinned = {pin.name for file in files(Path(folder)) for pin in pins(file)}
    return frozenset({*pinned, *(normal(str(name)) for name in proved)})


def _pin(text: str, path: Path, line: int) -> Pin:
    requirement = text.split("--hash=")[0].strip()
    match = _NAME.match(requirement)
    name, bounds = (match[1], match[3].split(";")[0].strip()) if match else (requirement, "")
    version = _PIN.match(bounds)
    return Pin(normal(name), version[1] if version else None, "--hash=" in text, requirement, path, line)
