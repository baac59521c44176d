"""Locks of DeepSpeed's builds: torch waits for ever for one that a killed process left behind."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from allranks.errors import InputError, Problem

BUILD_SECONDS = 300.0
"""How old a lock gets. The builds of DeepSpeed's CPU operations took 24 and 35 s on 2 cores."""


def await_builds() -> None:
    """Return when nobody builds an operation of DeepSpeed's. Raise InputError at a lock older than a build takes.

    A rank that imports DeepSpeed may then load them: `make deepspeed-ops` builds what its scripts need on the CPU.
    """
    for lock in _locks():
        while (age := _age(lock)) is not None:
            if age > BUILD_SECONDS:
                raise InputError(
                    Problem(
                        where=f"lock {lock}",
                        found=f"left {age:.0f} s ago, by a build that has ended without removing it",
                        expected="no lock, or that of a build that goes on",
                        fix=f"rm {lock}",
                    )
                )
            time.sleep(0.1)


def remove_left() -> list[Path]:
    """Remove the locks that are older than a build takes, and return them: for whoever builds, not for a rank.

    A rank may be one of many, on many instances that share a home folder: there it is a person who decides.
    """
    left = [lock for lock in _locks() if (_age(lock) or 0.0) > BUILD_SECONDS]
    for lock in left:
        lock.unlink(missing_ok=True)
    return left


def _locks() -> Iterable[Path]:
    given = os.environ.get("TORCH_EXTENSIONS_DIR")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "torch_extensions")
    # torch.utils.cpp_extension: below its own folder there is one more, of Python's and CUDA's version.
    return Path(given).glob("deepspeed_*/lock") if given else cache.glob("*/deepspeed_*/lock")


def _age(lock: Path) -> float | None:
    """Return how many seconds old a lock is; None where there is none any more."""
    try:
        return time.time() - lock.stat().st_mtime
    except FileNotFoundError:
        return None
