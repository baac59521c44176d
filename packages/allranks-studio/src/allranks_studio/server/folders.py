"""The folders that a studio shows, their workspaces, and which of their files it may open."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.history.store import Store
from allranks.workspace import Workspace


@dataclass(frozen=True)
class Folder:
    """A folder of a project. id: its name in addresses; path: without links"""

    id: str
    path: Path
    workspace: Workspace

    @property
    def read_only(self) -> bool:
        root = self.workspace.root
        return not os.access(root if root.exists() else self.path, os.W_OK)

    def store(self) -> Store:
        """Return the store, only to read it. Raise InputError if there is none."""
        if not self.workspace.database.exists():
            raise InputError(Problem(str(self.path), "it has no runs", "a folder with runs", code="unknown-run"))
        return Store(self.workspace.database, reads=True)

    def file(self, path: str) -> Path:
        """Return the file at a path that is relative to the folder. It need not exist.

        Raise InputError if it is outside of the folder, also by a link.
        """
        inside = Path(os.path.realpath(self.path / path)) if path and "\0" not in path else self.path
        if inside == self.path or self.path not in inside.parents:
            raise InputError(Problem(path.replace("\0", ""), "it is not in the folder", f"a file in {self.path}"))
        return inside

    def owns(self, path: str) -> bool:
        """Return whether a path of a record, without links, is in the folder or in its workspace."""
        return any(Path(path).is_relative_to(os.path.realpath(each)) for each in (self.path, self.workspace.root))

    def shown(self, path: str) -> str:
        """Return a path relative to the folder if it is in it."""
        return os.path.relpath(path, self.path) if Path(path).is_relative_to(self.path) else path


def folders_of(paths: Iterable[Path]) -> dict[str, Folder]:
    """Return the folders by id. Raise InputError if one of them is not a folder that this user may read."""
    found: dict[str, Folder] = {}
    for path in dict.fromkeys(Path(os.path.realpath(path)) for path in paths):
        if not path.is_dir() or not os.access(path, os.R_OK | os.X_OK):
            raise InputError(Problem(str(path), "it is not a folder that you may read", "the folder of a project"))
        name = path.name or "root"
        name = next(each for each in (name, *(f"{name}-{n}" for n in range(2, len(found) + 3))) if each not in found)
        found[name] = Folder(name, path, Workspace.at(project=path))
    return found
