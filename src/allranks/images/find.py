"""Find the environments of a project, and read their files."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem, raise_any
from allranks.sdk.paths import project_folder
from allranks.sdk.yaml_lines import at, read_mapping

FOLDER = "environments"
"""The folder of a project that contains a folder for each environment."""

REGISTERED, EXPECTED = "environment.yaml", "expect.yaml"


@dataclass(frozen=True)
class EnvironmentFolder:
    """An environment. registered: the content of environment.yaml, which Azure ML registers"""

    folder: Path
    registered: dict[str, Any]

    @property
    def name(self) -> str:
        return self.folder.name

    def expectations(self) -> dict[str, Any]:
        """Return what the image must contain: its expect.yaml and its registered tags. Raise InputError if expect.yaml
        is missing or malformed."""
        path = self.folder / EXPECTED
        if not path.is_file():
            fix = "write it: see docs/how-to/build-images.md"
            raise InputError(Problem(str(path), "No such file or directory", "a YAML file", fix))
        expected = read_mapping(path)
        sections = "keys and values: probes, and what they must find, such as python: 3.12"
        raise_any(
            Problem(at(path, name), f"section {name!r} is {probes!r}", sections, "correct it")
            for name, probes in expected.items()
            if not isinstance(probes or {}, dict)
        )
        return {**expected, "tags": self.registered.get("tags") or {}}


def find_environments(root: Path | None = None, names: tuple[str, ...] = ()) -> tuple[EnvironmentFolder, ...]:
    """Return the named environments in root, by default all of them, sorted by name.

    root: a folder; default: `environments` in the current folder or its nearest parent

    Raise InputError if there is none, if a named one does not exist, or if one cannot be read.
    """
    root = environments_folder(Path.cwd()) if root is None else root
    existing = tuple(sorted(path.parent.name for path in root.glob(f"*/{REGISTERED}")))
    missing = [name for name in names if name not in existing]
    problems = [Problem(str(root), f"no environment {name!r}", ", ".join(existing), "correct it") for name in missing]
    if not existing:
        fix = "change to the project, or name the folder: --folder DIR"
        problems = [Problem(str(root), "no environment", f"folders with an {REGISTERED}", fix)]
    raise_any(problems)
    folders = (root / name for name in names or existing)
    return tuple(EnvironmentFolder(folder, read_mapping(folder / REGISTERED)) for folder in folders)


def environments_folder(start: Path) -> Path:
    """Return the nearest `environments` folder in start or its parents. Raise InputError if there is none."""
    return project_folder(start, FOLDER, "change to the project, or name the folder: --folder DIR")
