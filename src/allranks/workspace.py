"""The workspace folder, `.allranks/`: the store, the files of each run, code snapshots, and MLflow's data."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from allranks.errors import InputError, Problem

FOLDER = ".allranks"

RESERVE = 1 << 18
"""Bytes of the reserve of a workspace."""


class _Path:
    """A path in a workspace."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, workspace: Workspace, _: type) -> Path:
        return workspace.root / self._name


@dataclass(frozen=True)
class Workspace:
    """The paths in a workspace folder.

    root: the folder itself, absolute; the first run creates it
    """

    root: Path

    @classmethod
    def at(cls, folder: Path | str | None = None, *, project: Path | None = None) -> Workspace:
        """Return the workspace at `folder`; by default `.allranks` in the project, which is the current folder by
        default, or in its nearest parent that has one."""
        if folder is not None:
            root = Path(folder).resolve()  # a step's instance may not have the link
        else:
            current = project or Path.cwd()
            parents = (parent / FOLDER for parent in (current, *current.parents))
            root = next((path for path in parents if os.path.isdir(path)), current / FOLDER)
        try:
            is_folder = stat.S_ISDIR(os.stat(root).st_mode)
        except FileNotFoundError:
            return cls(root)
        except OSError as error:
            raise InputError(_cannot_be_made(root, str(error.strerror))) from None
        if not is_folder:
            raise InputError(_cannot_be_made(root, os.strerror(errno.ENOTDIR)))
        check_access(root, os.R_OK | os.X_OK)
        return cls(root)

    database, snapshots, runs = _Path("allranks.db"), _Path("snapshots"), _Path("runs")
    temporary = _Path("tmp")
    """The folder for temporary files of running instances."""
    file_digests = _Path("digests.db")
    """The database of the digests of files, which is only a cache."""
    reserve = _Path("reserve")
    """A file that `allranks clean` removes first on a full disk, because removing runs from the store needs some space.
    """
    tracked_files = _Path("mlflow")
    """The folder of MLflow's artifacts and models."""

    def registry(self, name: str) -> Workspace:
        """Return the folder with the assets of a registry."""
        return Workspace(self.root / "registries" / name.lower())

    @property
    def tracking_uri(self) -> str:
        """The URI of MLflow's metrics and models of this workspace."""
        # Escape only what SQLAlchemy would decode or cut off: MLflow does not decode the name of the folder.
        return f"sqlite:///{self.root / 'mlflow.db'}".replace("%", "%25").replace("?", "%3F")

    def make(self) -> None:
        """Create the folder, which only this user may enter. Raise InputError if that fails, if the path is not a
        folder, or if it is a folder that all users share, such as /tmp."""
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_private(self.root)
            self.runs.mkdir(exist_ok=True)
            self.snapshots.mkdir(exist_ok=True)
            if not self.reserve.exists():
                with contextlib.suppress(OSError):  # the disk is full already
                    self.reserve.write_bytes(bytes(RESERVE))
        except OSError as error:
            if error.errno == errno.ENOSPC:
                raise
            raise InputError(_cannot_be_made(self.root, str(error.strerror))) from None
        for folder in (self.root, self.runs, self.snapshots):
            check_access(folder, os.R_OK | os.W_OK | os.X_OK)
        check_access(self.database)

    def run_folder(self, run: str) -> Path:
        return self.runs / run


def _make_private(root: Path) -> None:
    status = root.stat()
    if status.st_uid != os.geteuid():
        return
    if status.st_mode & stat.S_ISVTX:
        found, fix = "all users share it", f"use a folder in it: --folder {root / 'workspace'}"
        raise InputError(Problem(str(root), found, "a folder of this user", fix, code="workspace-access"))
    if status.st_mode & 0o077:
        root.chmod(status.st_mode & 0o700)


def _cannot_be_made(root: Path, reason: str) -> Problem:
    found, fix = f"it cannot become a workspace: {reason}", "use another folder: --folder DIR"
    return Problem(str(root), found, "a writable folder", fix, code="workspace-access")


def check_access(path: Path, mode: int = os.R_OK | os.W_OK) -> None:
    """Raise InputError if a file or folder of a workspace exists and this user may not use it.

    mode: as for `os.access`; by default, reading and writing
    """
    if not os.path.lexists(path) or os.access(path, mode):  # in this order: another process may create it meanwhile
        return
    bits = ((os.R_OK, "read"), (os.W_OK, "write"), (os.X_OK, "enter"))
    denied = [word for bit, word in bits if mode & bit and not os.access(path, bit)]
    found = f"this user may not {' or '.join(denied)} it{_owner(path)}"
    fix = "use another folder: --folder DIR"
    raise InputError(Problem(str(path), found, "a workspace of this user", fix, code="workspace-access"))


def _owner(path: Path) -> str:
    owner = os.lstat(path).st_uid
    return "" if owner == os.geteuid() else f": it belongs to {user_name(owner)}"


def user_name(number: int) -> str:
    """Return the name of a user, or the number as text if it has none."""
    import pwd  # Windows does not have it

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return str(number)


def private_file(path: Path) -> None:
    """Make a file readable by its user only, and create it if necessary.

    SQLite gives its journals the same mode. If the file cannot be created or belongs to another user, opening it later
    raises the error.
    """
    with contextlib.suppress(OSError):
        try:
            mode = path.stat().st_mode
        except FileNotFoundError:
            os.close(os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o600))
        else:
            # Do not open it: closing a database drops the locks that this process holds on it (POSIX).
            if mode & 0o077:
                path.chmod(0o600)


def write_file(path: Path, text: str | bytes, mode: int = 0o644) -> None:
    """Write a file atomically: a reader finds either the earlier or the new text.

    Raise OSError if the file cannot be written. No temporary file remains then.
    """
    handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(text.encode() if isinstance(text, str) else text)
            os.fchmod(file.fileno(), mode)
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
