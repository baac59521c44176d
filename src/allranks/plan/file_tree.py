"""Walk and read a user's files in bounded time, whatever entries they include. Reading can be stopped.

FIFOs are never opened, because opening one blocks. Dangling links and links to a parent folder are not followed.
"""

import errno
import io
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

CHUNK = 1 << 20

FILE, FOLDER, LINK = "file", "folder", "link"
"""Kinds of entries. Entries of other kinds have no content to copy: a FIFO, a socket, a device."""


class StoppedError(Exception):
    """Reading or copying was stopped."""


class Stop(Protocol):
    """A flag that stops reading or copying, such as a threading.Event."""

    def is_set(self) -> bool: ...


@dataclass(frozen=True)
class Entry:
    """An entry of a folder.

    name:   relative to the folder
    kind:   FILE, FOLDER, LINK, or the name of another kind. A link to a file or a folder has the kind of its target
    target: the target of a LINK
    status: of the path, with links followed; None for a LINK
    """

    name: str
    path: Path
    kind: str
    target: str = ""
    status: os.stat_result | None = field(default=None, compare=False)


def entries(folder: Path, stop: Stop | None = None) -> Iterator[Entry]:
    """Yield the entries of a folder at any depth in a fixed order, each folder before its content.

    Raise OSError if a folder cannot be read, StoppedError once `stop` is set.
    """
    real = Path(os.path.realpath(folder))
    above = {_identity(os.stat(parent)) for parent in (real, *real.parents)}
    yield from _entries(folder, frozenset(above), stop)


def open_file(path: Path) -> io.FileIO:
    """Open a regular file for reading. Raise OSError if it cannot be opened or is not a regular file."""
    # Without O_NONBLOCK, opening a FIFO would block. It has no effect on regular files.
    file = io.FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    mode = os.fstat(file.fileno()).st_mode
    if not stat.S_ISREG(mode):
        file.close()
        raise OSError(errno.EINVAL, f"it is a {_kind(mode)}, not a file", str(path))
    return file


def chunks(file: io.FileIO, stop: Stop | None = None) -> Iterator[bytes]:
    """Yield the content of a file piece by piece. Raise OSError if it cannot be read, StoppedError once `stop` is
    set."""
    while chunk := file.read(CHUNK):
        check(stop)
        yield chunk


def kind_of(path: str | Path) -> str:
    """Return the kind of the entry at a path, with links followed. Raise OSError if there is none."""
    return _kind(os.stat(path).st_mode)


def check(stop: Stop | None) -> None:
    """Raise StoppedError if `stop` is set."""
    if stop is not None and stop.is_set():
        raise StoppedError


def _entries(folder: Path, above: frozenset[tuple[int, int]], stop: Stop | None) -> Iterator[Entry]:
    # No recursion: folders may be nested deeper than Python's stack.
    open_folders = [(folder, "", above, iter(sorted(os.listdir(folder))))]
    while open_folders:
        folder, prefix, above, names = open_folders[-1]
        name = next(names, None)
        check(stop)
        if name is None:
            open_folders.pop()
            continue
        path = folder / name
        try:
            status = os.stat(path)
        except OSError:
            if not path.is_symlink():
                raise
            yield Entry(prefix + name, path, LINK, os.readlink(path))
            continue
        identity = _identity(status)
        if not stat.S_ISDIR(status.st_mode):
            yield Entry(prefix + name, path, _kind(status.st_mode), status=status)
        elif identity in above:
            target = os.path.relpath(os.path.realpath(path), os.path.realpath(folder))
            yield Entry(prefix + name, path, LINK, target)
        else:
            yield Entry(prefix + name, path, FOLDER, status=status)
            inside = iter(sorted(os.listdir(path)))
            open_folders.append((path, f"{prefix}{name}/", above | {identity}, inside))


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _kind(mode: int) -> str:
    if stat.S_ISREG(mode):
        return FILE
    if stat.S_ISDIR(mode):
        return FOLDER
    return "FIFO" if stat.S_ISFIFO(mode) else "socket" if stat.S_ISSOCK(mode) else "device"
