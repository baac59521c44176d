"""Locks of DeepSpeed's operations while they are built: a process that loads an operation waits for its lock."""

import contextlib
import glob
import os
import time
from collections.abc import Iterable
from pathlib import Path

from allranks.errors import InputError, Problem

BUILD_SECONDS = 300.0
"""Maximum age of a valid lock in seconds. The builds of DeepSpeed's CPU operations took 24 and 35 s on 2 cores."""


def await_builds() -> None:
    """Wait until no process builds an operation of DeepSpeed. Raise InputError for a lock older than BUILD_SECONDS.

    After that, a rank can load the operations. `make deepspeed-ops` builds those that the scripts need on the CPU.
    """
    for lock in _locks():
        while (age := _age(lock)) is not None:
            if age > BUILD_SECONDS:
                found = f"left {age:.0f} s ago, by a build that has ended without removing it"
                expected = "no lock, or the lock of a running build"
                raise InputError(Problem(f"lock {lock}", found, expected, f"rm {lock}"))
            time.sleep(0.1)


def remove_left() -> list[Path]:
    """Remove the locks that no process of this machine holds open, and return them. For build scripts only.

    Ranks must not call it: the instances may share a home folder, and there the user has to decide.
    """
    stale = [lock for lock in _locks() if not _is_held(lock)]
    for lock in stale:
        lock.unlink(missing_ok=True)
    return stale


def _locks() -> Iterable[Path]:
    folder = os.environ.get("TORCH_EXTENSIONS_DIR")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "torch_extensions")
    # torch.utils.cpp_extension creates one more folder below its own, named by the Python and CUDA versions.
    return Path(folder).glob("deepspeed_*/lock") if folder else cache.glob("*/deepspeed_*/lock")


def _age(lock: Path) -> float | None:
    """Return the age of a lock in seconds; None if it has been removed."""
    try:
        return time.time() - lock.stat().st_mtime
    except FileNotFoundError:
        return None


def _is_held(lock: Path) -> bool:
    """Return whether a process has the lock open, as torch.utils.file_baton does until its build ends."""
    path = str(lock.resolve())
    for descriptor in glob.iglob("/proc/[0-9]*/fd/*"):
        with contextlib.suppress(OSError):  # the process has ended, or is another user's
            if os.readlink(descriptor) == path:
                return True
    return False
