"""The folders of an attempt: temporary folders of its instances, and folders that were made before they are needed.

A file system such as ext4 creates a folder or a file more slowly than it moves one, and more slowly still for some
seconds after others were removed. So a temporary folder that a step leaves empty serves the next step too, and the
folders and the log of the next step are made while the ranks of other steps run.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from allranks.contract import logs
from allranks.local.instances import temporary

_PLAIN = re.compile(r"[\w@%+=:,./-]*", re.ASCII)
_SPECIAL = re.compile(r"[^\w@%+=:,.-]", re.ASCII)


def is_plain(path: str) -> bool:
    """Return whether a shell reads a path as one unchanged word."""
    return _PLAIN.fullmatch(path) is not None


def plain_name(name: str) -> str:
    """Return the name of a file without special characters, with the same suffix if that has none."""
    return _SPECIAL.sub("_", name)


TMP = "/tmp"
"""Where an instance of the rack has its own temporary folder."""


@dataclass(frozen=True)
class TemporaryFolder:
    """The temporary folder of an instance: its path on this machine, and as the instance sees it."""

    path: str
    seen: str


class TemporaryFolders:
    """The temporary folders of one run's instances. For the event loop's thread only.

    root: where instances with their own /tmp have their folders, on the disk of the workspace
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._own: temporary.TemporaryFolders | None = None
        self._count = 0
        self._free_own: dict[tuple[str, ...], list[Path]] = {}
        self._free_shared: list[TemporaryDirectory[str]] = []

    @property
    def folder(self) -> Path:
        """Return the run's own folder below `root`, which is removed with all its contents after the run."""
        if self._own is None:
            self._own = temporary.make(self._root, 0)
        return self._own.folder

    @contextlib.contextmanager
    def take(self, keep: Sequence[Collection[str]], *, own_tmp: bool) -> Iterator[list[TemporaryFolder]]:
        """Yield the temporary folder of each instance. Only the end of the event loop waits for their removal.

        keep:    for each instance, the paths of this machine that stay visible in it
        own_tmp: whether each instance has its own /tmp

        An instance without its own /tmp gets the folder's path, which is short, because the path of a Unix socket may
        have 107 characters.
        """
        with self._take_own(keep) if own_tmp else self._take_shared(len(keep)) as folders:
            yield folders

    def close(self) -> None:
        """Remove the unused folders. Only the end of the event loop waits for it."""
        loop = asyncio.get_running_loop()
        for shared in self._free_shared:
            loop.run_in_executor(None, shared.cleanup)
        self._free_shared = []
        if self._own is not None:
            loop.run_in_executor(None, self._own.remove)
            self._own = None
            self._free_own = {}

    @contextlib.contextmanager
    def _take_own(self, keep: Sequence[Collection[str]]) -> Iterator[list[TemporaryFolder]]:
        kept = [_below_tmp(paths) for paths in keep]
        folders = [free.pop() if (free := self._free_own.get(paths)) else self._make_own() for paths in kept]
        is_over = False
        try:
            yield [TemporaryFolder(str(folder), TMP) for folder in folders]
            is_over = True
        finally:
            for paths, folder in zip(kept, folders, strict=True):
                if is_over and _is_unused(folder, 0o1777, _with_parents(paths)):
                    self._free_own.setdefault(paths, []).append(folder)
                else:
                    asyncio.get_running_loop().run_in_executor(None, temporary.remove, folder)

    def _make_own(self) -> Path:
        folder = self.folder / str(self._count)
        self._count += 1
        folder.mkdir()
        folder.chmod(0o1777)
        return folder

    @contextlib.contextmanager
    def _take_shared(self, count: int) -> Iterator[list[TemporaryFolder]]:
        parent = None if is_plain(gettempdir()) else TMP
        folders = [
            self._free_shared.pop()
            if self._free_shared
            else TemporaryDirectory(prefix="allranks-", dir=parent, ignore_cleanup_errors=True)
            for _ in range(count)
        ]
        is_over = False
        try:
            yield [TemporaryFolder(folder.name, folder.name) for folder in folders]
            is_over = True
        finally:
            for folder in folders:
                if is_over and _is_unused(folder.name, 0o700):
                    self._free_shared.append(folder)
                else:
                    asyncio.get_running_loop().run_in_executor(None, folder.cleanup)


def _below_tmp(paths: Collection[str]) -> tuple[str, ...]:
    """Return the paths that an instance with its own /tmp finds below it, relative to /tmp."""
    real = sorted({os.path.realpath(path) for path in paths})
    return tuple(path[len(TMP) + 1 :] for path in real if path.startswith(f"{TMP}/"))


def _with_parents(paths: Collection[str]) -> frozenset[str]:
    """Return relative paths and all their parent folders."""
    found = set(paths)
    for path in paths:
        while path := os.path.dirname(path):
            found.add(path)
    return frozenset(found)


def _is_unused(folder: str | Path, mode: int, mount_points: frozenset[str] = frozenset()) -> bool:
    """Return whether a step left a folder unchanged: empty except for mount points."""
    try:
        status = os.lstat(folder)
        if not stat.S_ISDIR(status.st_mode) or stat.S_IMODE(status.st_mode) != mode or status.st_uid != os.geteuid():
            return False
        left = [""]
        while left:
            parent = left.pop()
            with os.scandir(os.path.join(folder, parent)) as entries:
                for entry in entries:
                    name = os.path.join(parent, entry.name)
                    if name not in mount_points or not entry.is_dir(follow_symlinks=False):
                        return False
                    left.append(name)
    except OSError:
        return False
    return True


FOLDERS = ("reports", logs.FOLDER, "outputs", "instances")
"""Folders of every step."""

INSTANCE, CODE, OUTPUTS = "0", "code", "outputs"
LINK = "../../../outputs"
"""From the working directory of an instance to the step's artifacts."""


class NextFolders:
    """Folders of steps of one run that do not contain anything yet. Threads may call `place`; use all else on the
    thread of the event loop.

    parent: returns the folder for them, on the disk of the steps' folders
    """

    def __init__(self, parent: Callable[[], Path]) -> None:
        self._parent = parent
        self._ready: list[str] = []
        self._returned: list[str] = []
        self._files: list[str] = []
        self._count = 0

    def place(self, folder: Path) -> bool:
        """Make a step's folders at a path, with those of its first instance. Return False if the path exists, or no
        folders are ready."""
        try:
            ready = self._ready.pop()  # first, because another thread may be placing one too
        except IndexError:
            return False
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            os.rename(ready, folder)
        except OSError:
            self._ready.append(ready)
            return False
        return True

    def make_file(self, path: Path) -> None:
        """Make an empty file for this user only, unless it exists. Raise OSError if that fails."""
        if self._files and not os.path.lexists(path):
            file = self._files.pop()
            try:
                os.rename(file, path)
            except OSError:
                self._files.append(file)
            else:
                return
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))

    def take_back(self, folder: Path) -> bool:
        """Take back the folders of a completed step for another step. Return False if the step left files in them or
        changed them."""
        if len(self._returned) > 1 or not _is_as_made(folder / "instances"):
            return False
        self._returned.append(str(folder / "instances"))
        return True

    def make_next(self) -> None:
        """Make the folders and the file of the next step, unless they are ready. Call it when the engine is idle."""
        with contextlib.suppress(OSError):
            if not self._files:
                file = os.path.join(self._parent(), f"file-{self._count}")
                self._count += 1
                os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
                self._files.append(file)
            if self._ready:
                return
            folder = os.path.join(self._parent(), f"step-{self._count}")
            self._count += 1
            os.mkdir(folder)
            for name in FOLDERS[:-1]:
                os.mkdir(f"{folder}/{name}")
            if self._returned:
                os.rename(self._returned.pop(), f"{folder}/instances")
            else:
                code = f"{folder}/instances/{INSTANCE}/{CODE}"
                os.makedirs(code)
                os.symlink(LINK, f"{code}/{OUTPUTS}")
            self._ready.append(folder)

    def returned(self) -> list[str]:
        """Return the folders that were taken back and not used again."""
        returned, self._returned = self._returned, []
        return returned


def _is_as_made(instances: Path) -> bool:
    """Return whether the folder of a step's instances is as it was made."""
    code = f"{instances}/{INSTANCE}/{CODE}"
    try:
        return (
            os.listdir(instances) == [INSTANCE]
            and os.listdir(f"{instances}/{INSTANCE}") == [CODE]
            and os.listdir(code) == [OUTPUTS]
            and os.readlink(f"{code}/{OUTPUTS}") == LINK
            and os.stat(code).st_mode == os.stat(instances).st_mode
            and os.stat(code).st_uid == os.geteuid()
        )
    except OSError:
        return False
