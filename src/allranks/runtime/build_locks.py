"""Locks of DeepSpeed's builds: torch waits for ever for one that a killed process left behind."""

from __future__ import annotations

import os
import time
from pathlib import Path

from allranks.errors import InputError, Problem

BUILD_SECONDS = 300.0
"""How old a lock gets. The builds of DeepSpeed's CPU operations took 24 and 35 s on 2 cores."""


def await_builds() -> None:
    """Return when nobody builds an operation of DeepSpeed's. Raises InputError at a lock older than a build takes.

    A rank that imports DeepSpeed may then load them: `make deepspeed-ops` builds what its scripts need on the CPU.
    """
    given = os.environ.get("TORCH_EXTENSIONS_DIR")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "torch_extensions")
    # torch.utils.cpp_extension: below its own folder there is one more, of Python's and CUDA's version.
    locks = Path(given).glob("deepspeed_*/lock") if given else cache.glob("*/deepspeed_*/lock")
    for lock in locks:
        await_build(lock)


def await_build(lock: Path) -> None:
    """Return when this lock is gone. Raises what `await_builds` raises."""
    while True:
        try:
            age = time.time() - lock.stat().st_mtime
        except FileNotFoundError:
            return
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
