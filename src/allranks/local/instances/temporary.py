"""Temporary folders of instances, on disk. They are removed when they are no longer used, also after their owner was
killed.

The owner has a lock on its folder, which the kernel releases when the owner ends. `sweep` removes the folders without
a lock. This module imports the standard library only, because the supervisor removes folders too.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path  # the supervisor starts faster without it


class TemporaryFolders(NamedTuple):
    """The folders of one attempt.

    folder:    their parent folder, which only this user may enter
    instances: one for each instance; every user may write to it, as to /tmp
    """

    folder: Path
    instances: tuple[Path, ...]
    lock: int

    def remove(self) -> None:
        """Remove the folders. Leave what cannot be removed to `sweep`."""
        remove(self.folder)
        os.close(self.lock)


def make(root: Path, count: int) -> TemporaryFolders:
    """Make the folders of an attempt below `root`. Raise OSError on failure."""
    # Not needed by the supervisor.
    import tempfile
    from pathlib import Path

    root.mkdir(exist_ok=True)
    with _lock(root, fcntl.LOCK_SH):  # no sweep between creating the folder and locking it
        folder = Path(tempfile.mkdtemp(dir=root, prefix=""))
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(lock, fcntl.LOCK_EX)
    instances = tuple(folder / str(number) for number in range(count))
    for instance in instances:
        instance.mkdir()
        instance.chmod(0o1777)
    return TemporaryFolders(folder, instances, lock)


def sweep(root: Path) -> None:
    """Remove the folders below `root` whose owners were killed."""
    for folder, lock in _dead(root):
        remove(folder)
        os.close(lock)


def leftovers(root: Path) -> list[Path]:
    """Return the folders that `sweep` would remove."""
    dead = _dead(root)
    for _, lock in dead:
        os.close(lock)
    return [folder for folder, _ in dead]


def _dead(root: Path) -> list[tuple[Path, int]]:
    """Return the folders whose owners have ended, each with a lock on it."""
    dead: list[tuple[Path, int]] = []
    with contextlib.suppress(FileNotFoundError), _lock(root, fcntl.LOCK_EX):
        for folder in root.iterdir():
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # its owner has just removed the folder
                lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    os.close(lock)
                else:
                    dead.append((folder, lock))
    return dead


def remove(folder: str | Path) -> None:
    """Remove a folder, including its read-only folders. Ignore what cannot be removed."""
    import shutil  # the supervisor needs it only when it ends

    shutil.rmtree(folder, ignore_errors=True)
    if not os.path.isdir(folder):
        return
    with contextlib.suppress(OSError):
        os.chmod(folder, 0o700)
        for parent, folders, _ in os.walk(folder):
            for name in folders:
                if not os.path.islink(path := os.path.join(parent, name)):
                    os.chmod(path, 0o700)
    shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _lock(folder: Path, kind: int) -> Iterator[None]:
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(lock, kind)
        yield
    finally:
        os.close(lock)
