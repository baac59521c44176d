"""An SQLite file of a workspace, with a version of its tables."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar, Self

from allranks.errors import InputError, Problem
from allranks.workspace import check_access, private_file

_ROOM = 1 << 18
"""Bytes of disk space that SQLite needs for the files beside a database."""


class Database:
    """An open file. Use it as a context manager, on one thread. A subclass describes its tables.

    kind:        the name of the file in messages, such as "store"
    tables:      the statements that create the tables
    version:     of the tables; a file of another version is rejected
    synchronous: SQLite's setting. With FULL, a committed change survives a power failure
    """

    kind: ClassVar[str]
    tables: ClassVar[str]
    version: ClassVar[int]
    synchronous: ClassVar[str] = "NORMAL"

    def __init__(self, path: Path, *, reads: bool = False) -> None:
        """Open the file, and create it if it does not exist.

        reads: whether the file is only read. It may then be on a full disk, or where this user may not write

        Raise InputError if the file is of another kind or version, and OSError if the disk is full.
        """
        self.path = path
        self._copy: tempfile.TemporaryDirectory[str] | None = None
        if not reads:
            self._open(path)
            return
        check_access(path, os.R_OK)
        try:
            # SQLite creates two files beside a file that it reads.
            self._open(path if os.access(path.parent, os.W_OK) and os.access(path, os.W_OK) else self._copied())
        except OSError as error:
            if error.errno != errno.ENOSPC or self._copy is not None:
                raise
            self._open(self._copied())

    def _open(self, path: Path) -> None:
        check_access(path)
        try:
            private_file(path)
            # Writes are short, so a reader waits for them.
            self.connection = sqlite3.connect(path, timeout=30, isolation_level=None)
            self._use_wal()
            self.connection.execute(f"PRAGMA synchronous = {self.synchronous}")
            version = self._version() or self._create()
        except sqlite3.DatabaseError as error:
            raise self._plain(error) from None
        if version != self.version:
            raise self._unusable(f"a {self.kind} of version {version}, this is version {self.version}")

    def _copied(self) -> Path:
        """Return a copy of the file, and of its write-ahead log, in a temporary folder."""
        self._copy = tempfile.TemporaryDirectory(prefix="allranks-")
        for suffix in ("", "-wal"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copyfile(f"{self.path}{suffix}", Path(self._copy.name, f"{self.path.name}{suffix}"))
        return Path(self._copy.name, self.path.name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        """Close the file. Raise InputError or OSError instead of SQLite's errors, as the constructor does."""
        self.connection.close()
        if self._copy is not None:
            self._copy.cleanup()
        if isinstance(error, sqlite3.DatabaseError):
            raise self._plain(error) from None

    def _use_wal(self) -> None:
        # If several processes open a new file at once, SQLite raises an error instead of waiting.
        for tries_left in reversed(range(1000)):
            try:
                self.connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or not tries_left:
                    raise
                time.sleep(0.03)

    def _version(self) -> int:
        (version,) = self.connection.execute("PRAGMA user_version").fetchone()
        return int(version)

    def _create(self) -> int:
        """Create the tables in an empty file, and return their version."""
        with transaction(self.connection):
            if version := self._version():  # another process has created them
                return version
            # executescript would commit the transaction.
            for statement in filter(str.strip, self.tables.split(";")):
                self.connection.execute(statement)
            self.connection.execute(f"PRAGMA user_version = {self.version}")
        return self.version

    def _plain(self, error: sqlite3.DatabaseError) -> InputError | OSError:
        number = 0
        if "disk is full" in str(error):
            number = errno.ENOSPC
        elif "readonly" in str(error) or ("unable to open" in str(error) and not self.path.is_dir()):
            number = errno.EROFS
        elif "disk I/O error" in str(error):  # also where there is no room for the files beside it
            disk = os.statvfs(self.path.parent)
            number = errno.ENOSPC if disk.f_bavail * disk.f_frsize < _ROOM else errno.EIO
        return OSError(number, os.strerror(number), str(self.path)) if number else self._unusable(str(error))

    def _unusable(self, found: str) -> InputError:
        fix = f"use another folder: --folder DIR; or restore a copy; or move {self.path.name} away"
        found = f"not a {self.kind} that can be used: {found}"
        return InputError(Problem(str(self.path), found, "", fix, code="damaged-workspace"))


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit the changes of the block together, or none of them if it raises. Other processes write before or after."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        yield
