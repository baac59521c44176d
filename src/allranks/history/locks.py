"""Locks of running runs: the engine holds a lock in the folder of its run. The kernel releases it when the process
ends."""

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.text import clock
from allranks.workspace import check_access

NAME = "engine.lock"

_LOOK = 0.02
"""Seconds between two polls of a lock, because flock(2) has no timeout."""


@dataclass(frozen=True)
class Holder:
    """The process that executes a run. since: seconds since the epoch"""

    pid: int
    since: float


@contextlib.contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Hold the lock of the run in this folder inside of the block.

    Raise InputError, with the process id, if another process holds it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    check_access(folder / NAME)
    descriptor = os.open(folder / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with open(descriptor, "r+", encoding="utf-8") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            current = holder(folder) or Holder(0, 0.0)
            since = f" since {clock(current.since)}" if current.since else ""
            found = f"process {current.pid or '?'} has been executing it{since}"
            fix = f"wait for it to end, or: allranks cancel {folder.name}"
            raise InputError(Problem(f"run {folder.name}", found, "", fix, code="run-in-progress")) from None
        file.truncate()
        json.dump({"pid": os.getpid(), "since": time.time()}, file)
        file.flush()
        yield


def holder(folder: Path) -> Holder | None:
    """Return the process that executes the run in this folder, or None."""
    try:
        with open(folder / NAME, encoding="utf-8") as file:
            if _is_free(file.fileno()):
                return None
            data = json.loads(file.read())
            return Holder(int(data["pid"]), float(data["since"]))
    except FileNotFoundError:
        return None
    # The lock is another user's, or its holder has not written its id yet.
    except (PermissionError, ValueError, KeyError, TypeError):
        return Holder(0, 0.0)


def wait(folder: Path, seconds: float | None = None) -> bool:
    """Wait until no process executes the run in this folder, for at most `seconds`. Return False after a time-out."""
    with contextlib.suppress(FileNotFoundError), open(folder / NAME, encoding="utf-8") as file:
        if seconds is None:
            fcntl.flock(file, fcntl.LOCK_SH)
            return True
        end = time.monotonic() + seconds
        while not _is_free(file.fileno()):
            if time.monotonic() > end:
                return False
            time.sleep(_LOOK)
    return True


def _is_free(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
