"""Digests of the data that the steps of a run read and write. Each path is digested once, however many steps read it.

Digests of large files are saved in the workspace. A file is unchanged if its device, inode, size, and the times of its
last modification and last change are the same, as in git's index. The kernel sets the time of the last change whenever
the content or another attribute changes, and a program cannot set it back.
"""

import asyncio
import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from allranks.history.database import transaction
from allranks.history.records import OutputRecord
from allranks.local.attempt.running_steps import Stop
from allranks.plan import digest
from allranks.plan.digest import KnownDigests
from allranks.plan.ports import PRIMITIVES
from allranks.plan.values import ResolvedInput
from allranks.workspace import private_file


@dataclass
class _Digesting:
    """The computation of the digest of one path. end: stops it when no step waits for it any longer"""

    task: asyncio.Task[str]
    end: threading.Event
    waiting: int = 0


class Digests:
    """The digests computed so far in one run. Not thread-safe.

    files: saved digests, with which unchanged files need not be read again
    """

    def __init__(self, files: KnownDigests | None = None) -> None:
        self._files = files
        self._by_path: dict[str, _Digesting] = {}
        self._written: dict[str, str] = {}

    def add(self, outputs: Iterable[OutputRecord]) -> None:
        for output in outputs:
            if output.digest:
                self._written[output.path] = output.digest
                self._by_path.pop(output.path, None)

    async def read(self, ports: Iterable[ResolvedInput], stop: Stop) -> dict[str, str | None]:
        """Return the text of a primitive or the digest of the data of each port. Reuse depends on them.

        Raise OSError if data cannot be read, StoppedError once `stop` is set.
        """
        return {
            port.name: port.value
            if port.value is None or port.type in PRIMITIVES
            else self._written.get(port.value) or await self._path_digest(port.value, stop)
            for port in ports
        }

    def peek(self, ports: Iterable[ResolvedInput]) -> dict[str, str | None]:
        """Return, without reading data, the text of a primitive, the digest of an output of this run, or a path."""
        return {port.name: self._written.get(port.value or "", port.value) for port in ports}

    async def _path_digest(self, path: str, stop: Stop) -> str:
        digesting = self._by_path.get(path)
        if digesting is None or digesting.end.is_set() or (digesting.task.done() and _has_failed(digesting.task)):
            end = threading.Event()
            task = asyncio.create_task(asyncio.to_thread(digest.of_path, Path(path), end, self._files))
            task.add_done_callback(_has_failed)  # retrieve its exception, because possibly no step waits for it
            digesting = self._by_path[path] = _Digesting(task, end)
        digesting.waiting += 1
        try:
            # Several steps may wait for the task, so a canceled step must not cancel it.
            return await stop.or_result(digesting.task)
        finally:
            digesting.waiting -= 1
            if not digesting.waiting and not digesting.task.done():
                digesting.end.set()


def _has_failed(task: asyncio.Task[str]) -> bool:
    return task.cancelled() or task.exception() is not None


SMALL = 1 << 14
"""Bytes up to which reading a file takes no longer than looking up its digest."""

UNSETTLED = 2.0
"""Seconds after a file's last change during which its digest is not saved. Another change within the granularity of the
file system's clock, which is up to 2 seconds (FAT), would not alter the times."""

_TABLE = """
    CREATE TABLE IF NOT EXISTS file (
        device INTEGER, inode INTEGER, size INTEGER, modified INTEGER, changed INTEGER, digest BLOB,
        PRIMARY KEY (device, inode)
    )
"""

_FIND = "SELECT digest FROM file WHERE device = ? AND inode = ? AND size = ? AND modified = ? AND changed = ?"


class FileDigests:
    """The saved digests of one workspace. Several threads and processes may use the same file at once.

    path: the SQLite file. It is only a cache: it may be removed, and errors in reading or writing it are ignored
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._has_failed = False
        self._added: dict[tuple[int, int], tuple[int, int, int, int, int, bytes]] = {}

    def find(self, status: os.stat_result) -> str | None:
        if status.st_size <= SMALL:
            return None
        row = _row(status)
        with self._lock, contextlib.suppress(sqlite3.Error):
            if (connection := self._open()) is not None:
                found = connection.execute(_FIND, row).fetchone()
                return None if found is None else bytes(found[0]).hex()
        return None

    def add(self, status: os.stat_result, digest: str, read: float) -> None:
        """Add a digest, unless the file is small or has just changed.

        status: the status of the file
        read:   the time before the first byte was read, in seconds since the epoch
        """
        if status.st_size <= SMALL or max(status.st_mtime, status.st_ctime) > read - UNSETTLED:
            return
        row = _row(status)
        with self._lock:
            self._added[row[0], row[1]] = (*row, bytes.fromhex(digest))

    def save(self) -> None:
        with self._lock:
            added, self._added = list(self._added.values()), {}
            if not added:
                return
            with contextlib.suppress(sqlite3.Error):
                if (connection := self._open()) is not None:
                    with transaction(connection):
                        connection.executemany("INSERT OR REPLACE INTO file VALUES (?, ?, ?, ?, ?, ?)", added)

    def close(self) -> None:
        """Close the file. Later calls find and save nothing."""
        with self._lock:
            self._has_failed = True
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _open(self) -> sqlite3.Connection | None:
        """Return the open file; None if it cannot be used."""
        if self._connection is None and not self._has_failed:
            try:
                private_file(self._path)
                connection = sqlite3.connect(self._path, timeout=5, isolation_level=None, check_same_thread=False)
                connection.execute("PRAGMA journal_mode = WAL")
                # A power failure may damage the file or lose rows. The file is then ignored, or fills again.
                connection.execute("PRAGMA synchronous = NORMAL")
                connection.execute(_TABLE)
                self._connection = connection
            except (sqlite3.Error, OSError):
                self._has_failed = True
        return self._connection


def _row(status: os.stat_result) -> tuple[int, int, int, int, int]:
    return (
        _to_signed(status.st_dev), _to_signed(status.st_ino), status.st_size, status.st_mtime_ns, status.st_ctime_ns,
    )  # fmt: skip


def _to_signed(number: int) -> int:
    """Convert an unsigned 64-bit number to a signed one, which SQLite can store."""
    return number - (1 << 64) if number >= 1 << 63 else number
