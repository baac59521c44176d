"""Search a folder of component specs, at any depth, by name and version."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from allranks.sdk import bounded_yaml, spec_files, specs

_NAME = re.compile(r"^name:\s*[\"']?(?P<name>[^\s\"'#]+)", re.MULTILINE)
_PYTHON_NAME = re.compile(r"\bname\s*=\s*[\"'](?P<name>\w+)[\"']|^def\s+(?P<function>\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Spec:
    """A component's spec in a folder."""

    path: Path
    version: str


def find(folder: Path, name: str) -> tuple[Spec, ...]:
    """Return the specs with a name, the highest version first; those of one version sorted by path."""
    matches = [Spec(path, _version(path, name)) for path in _candidates(folder, name) if spec_files.is_component(path)]
    matches.sort(key=lambda spec: spec.path)
    return tuple(sorted(matches, key=lambda spec: _order(spec.version), reverse=True))


def _candidates(folder: Path, name: str) -> Iterator[Path]:
    """Yield files that may describe a component. Their text is searched, because parsing a thousand files would take a
    minute."""
    for path, text in _files(folder):
        pattern = _PYTHON_NAME if path.suffix == ".py" else _NAME
        if any(name in match.groups() for match in pattern.finditer(text)):
            yield path


def _files(folder: Path) -> Iterator[tuple[Path, str]]:
    for path in spec_files.files_below(folder, ".yaml", ".yml", *specs.SPECS, with_code=True):
        with contextlib.suppress(OSError, UnicodeDecodeError):
            yield path, bounded_yaml.read(path)


def _version(path: Path, name: str) -> str:
    if path.suffix == ".py":
        return next((str(spec.version or "") for spec in specs.load(path) if spec.name == name), "")
    return str(bounded_yaml.load_file(path).get("version", ""))


def _order(version: str) -> tuple[tuple[int, int, str], ...]:
    """Return a sort key of a version: 1.10 comes after 1.9."""
    parts = re.findall(r"\d+|[^\d.]+", version)
    return tuple((1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts)
