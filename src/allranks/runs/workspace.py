"""The folder in which everything local lives, `.allranks/`: the store, the files of each run, code snapshots, MLflow's
data."""

from __future__ import annotations

import contextlib
import errno
import os
from dataclasses import dataclass
from pathlib import Path

from allranks.errors import InputError, Problem

FOLDER = ".allranks"


@dataclass(frozen=True)
class Workspace:
    """Names of what is inside a workspace folder.

    root: the folder itself, absolute; it is made at the first run
    """

    root: Path

    @classmethod
    def at(cls, folder: Path | str | None = None) -> Workspace:
        """The workspace at `folder`; without one, `.allranks` in the nearest folder upwards that has it, or else in the
        current folder."""
        if folder is not None:
            return cls(Path(folder).absolute())
        here = Path.cwd()
        for parent in (here, *here.parents):
            if (parent / FOLDER).is_dir():
                return cls(parent / FOLDER)
        return cls(here / FOLDER)

    @property
    def database(self) -> Path:
        return self.root / "allranks.db"

    @property
    def snapshots(self) -> Path:
        return self.root / "snapshots"

    @property
    def runs(self) -> Path:
        return self.root / "runs"

    @property
    def temporary(self) -> Path:
        """Where instances that are running keep temporary files."""
        return self.root / "tmp"

    @property
    def tracking_uri(self) -> str:
        """Where MLflow keeps metrics and models of this workspace."""
        return f"sqlite:///{self.root / 'mlflow.db'}"

    @property
    def tracked_files(self) -> Path:
        """Where MLflow keeps files: artifacts and models."""
        return self.root / "mlflow"

    def make(self) -> None:
        """Makes the folder. Raises InputError where it can't be made or is something else."""
        try:
            self.runs.mkdir(parents=True, exist_ok=True)
            self.snapshots.mkdir(exist_ok=True)
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise
            found = f"cannot be made a workspace: {error.strerror}"
            raise InputError(
                Problem(str(self.root), found, "a folder that you may write to", "give another one: --folder DIR")
            ) from None

    def run_folder(self, run: str) -> Path:
        """Return the folder of a run."""
        return self.runs / run


def private_file(path: Path) -> None:
    """Make a file readable for its user alone; create it, empty, where there is none.

    SQLite gives a database's mode to its journals too. Where the file cannot be created or is another user's, whoever
    opens it next says so.
    """
    with contextlib.suppress(OSError):
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o600))
        else:
            # Never opened: to close a database drops the locks that this process has on it (POSIX).
            if mode & 0o077:
                path.chmod(0o600)
