"""Training steps at which the engine injects a fault. A rank that reaches one waits until that has happened, so that it
happens between two training steps.

The steps are in a file beside the report of the rank, which exists only if the engine is to inject something.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from allranks.contract import report

PATIENCE = 30.0
"""Seconds that a rank waits for the engine, which may have been killed."""

HANG = "hang"
"""Content of the file that releases a rank: the rank waits for ever."""

HANG_SIGNAL = signal.SIGRTMIN + 9
"""Makes the main thread of a rank wait for ever, in a rank with HANG_VARIABLE."""

HANG_VARIABLE = "ALLRANKS_MAY_HANG"

_PAUSE = 0.002

_steps: list[int] | None = None


def hold(reports: Iterable[Path], steps: Iterable[int]) -> None:
    """Make the ranks with these report files wait at these training steps."""
    text = ",".join(map(str, sorted(set(steps))))
    for path in reports:
        path.parent.mkdir(parents=True, exist_ok=True)
        Path(f"{path}.steps").write_text(text, encoding="utf-8")


def release(path: Path, step: int, how: str = "") -> None:
    """Let the rank with this report file continue after a training step. how: "", or HANG"""
    new = Path(f"{path}.{step}.new")
    new.write_text(how, encoding="utf-8")
    new.rename(f"{path}.{step}")


def pending() -> list[int]:
    """Return the training steps at which faults of this rank are still due."""
    global _steps
    if _steps is None:
        _steps = _read(f"{os.environ.get(report.VARIABLE, '')}.steps")
    return _steps


def reached(step: int) -> None:
    """Report a training step at which a fault is due, and wait until it has been injected. Called on each rank after
    each step; a later step than the one that is due counts too."""
    steps = pending()
    while steps and step >= steps[0]:
        _wait(steps.pop(0))


def hang(*_: object) -> None:
    """Wait for ever. Handles HANG_SIGNAL."""
    while True:
        time.sleep(1.0)


def _wait(step: int) -> None:
    report.append(report.Reached(step))
    released = f"{os.environ[report.VARIABLE]}.{step}"
    end = time.monotonic() + PATIENCE
    while not os.path.exists(released) and time.monotonic() < end:
        time.sleep(_PAUSE)
    if os.path.exists(released) and Path(released).read_text(encoding="utf-8") == HANG:
        hang()


def _read(path: str) -> list[int]:
    try:
        return [int(text) for text in Path(path).read_text(encoding="utf-8").split(",")]
    except FileNotFoundError:
        return []
