"""Read the packages that an environment's folder pins."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

import yaml

from allranks.contract.requirements import normal
from allranks.sdk import bounded_yaml

PINNED, EXPECTED = "requirements.txt", "expect.yaml"
"""The files of an environment whose packages are all known: its lock file, and what must be true inside."""

_NAME = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)", re.MULTILINE)


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
    files = (file for kind in ("requirements*", "device-*", "libraries-*") for file in Path(folder).glob(f"{kind}.txt"))
    pinned = {name for file in files for name in _NAME.findall(file.read_text(encoding="utf-8"))}
    return frozenset(normal(str(name)) for name in {*pinned, *proved})
