"""The temporary folders of instances. A folder that a step leaves empty serves the next step too: making and removing a
folder takes longer than the rest of a small step's files."""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from allranks.local.attempt.plain_names import is_plain
from allranks.local.instances import temporary

TMP = "/tmp"
"""Where an instance of the rack has its own temporary folder."""


@dataclass(frozen=True)
class TemporaryFolder:
    """The temporary folder of an instance: its path on this machine, and as the instance sees it."""

    path: str
    seen: str


class TemporaryFolders:
    """The temporary folders of one run's instances. Use it on the thread of the event loop.

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
        """Remove the folders that are not used any more. Only the end of the event loop waits for it."""
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
    """Return relative paths with the folders that they are in."""
    found = set(paths)
    for path in paths:
        while path := os.path.dirname(path):
            found.add(path)
    return frozenset(found)


def _is_unused(folder: str | Path, mode: int, mount_points: frozenset[str] = frozenset()) -> bool:
    """Return whether a step has left a folder as it was: empty, but for the folders that something was mounted on."""
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
