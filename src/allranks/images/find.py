"""Find the environments of a project, and read their files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.images.dockerfile import Dockerfile, read
from allranks.sdk import internals
from allranks.sdk.paths import project_folder
from allranks.sdk.yaml_lines import at, read_mapping

FOLDER = "environments"
"""The folder of a project that holds one folder for each environment."""

BASE = "openmpi-ofed"
"""The environment whose stages the others begin with."""

_WRITE = "write it: see docs/environments.md"
DOCKERFILE, REGISTERED, EXPECTED = "Dockerfile", "environment.yaml", "expect.yaml"


@dataclass(frozen=True)
class EnvironmentFolder:
    """One environment.

    name:       the folder's name
    registered: the content of environment.yaml, which Azure ML registers
    expected:   the content of expect.yaml: what must be true inside
    """

    name: str
    folder: Path
    dockerfile: Dockerfile
    registered: dict[str, Any]
    expected: dict[str, Any]

    def file(self, name: str) -> Path:
        return self.folder / name


def find_environments(root: Path | None = None, names: tuple[str, ...] = ()) -> tuple[EnvironmentFolder, ...]:
    """Return the named environments in root; by default all of them, sorted by name.

    root: a folder; by default `environments` in the current folder or in the nearest parent that has one

    Raise InputError if there is none, if a named one does not exist, or if one cannot be read.
    """
    root = environments_folder(Path.cwd()) if root is None else root
    existing = tuple(sorted(path.parent.name for path in root.glob(f"*/{DOCKERFILE}")))
    problems = [
        Problem(f"{root}", f"no environment {name!r}", ", ".join(existing), "look at its spelling")
        for name in names
        if name not in existing
    ]
    if not existing:
        fix = "change to the project, or name the folder: --folder DIR"
        problems = [Problem(f"{root}", "no environment", f"folders with a {DOCKERFILE}", fix)]
    if problems:
        raise InputError.of(problems)
    return tuple(read_environment(root / name) for name in (names or existing))


def environments_folder(start: Path) -> Path:
    """Return the nearest `environments` folder in start or above it. Raise InputError if there is none."""
    return project_folder(start, FOLDER, "change to the project, or name the folder: --folder DIR")


def read_environment(folder: Path) -> EnvironmentFolder:
    """Read an environment. Raise InputError if a file is missing or malformed."""
    return EnvironmentFolder(
        name=folder.name,
        folder=folder,
        dockerfile=read(folder / DOCKERFILE),
        registered=read_mapping(folder / REGISTERED, _WRITE),
        expected=_read_expected(folder / EXPECTED),
    )


def _read_expected(path: Path) -> dict[str, Any]:
    expected = read_mapping(path, _WRITE)
    wrong = [name for name, probes in expected.items() if not isinstance(probes or {}, dict)]
    if wrong:
        sections = "keys and values: probes, and what they must find, such as python: 3.12"
        raise InputError.of(
            Problem(at(path, name), f"section {name!r} is {expected[name]!r}", sections, "correct it") for name in wrong
        )
    return expected


def environment_file(component: Any) -> Path | None:
    """Return the file of a component's environment; None if that is inline or registered in Azure ML."""
    environment = getattr(component, "environment", None)
    if environment is None or isinstance(environment, str):
        return None
    source = Path(internals.source_path(environment)) if internals.source_path(environment) else None
    # The SDK gives an inline environment the component's own file.
    if source and source.name not in ("component.yaml", Path(internals.source_path(component)).name):
        return source
    beside = Path(environment.path) / REGISTERED if environment.path else None
    return beside if beside and beside.is_file() else None
