"""Training steps at which the package allranks-lab injects a fault. A rank that reaches one waits until that has
happened, so that it happens between two training steps.

The steps are in a file beside the report of the rank, and for each that is over there is a file of its own.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from allranks.contract import report

PATIENCE = 30.0
"""Seconds that a rank waits for the engine, which may have been killed."""

HANG = "hang"
"""Content of the file of a step after which the rank makes no progress any more."""

_steps: list[int] | None = None


def pending() -> list[int]:
    """Return the training steps at which faults of this rank are still due."""
    global _steps
    if _steps is None:
        file = Path(f"{os.environ.get(report.VARIABLE, '')}.steps")
        _steps = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    return _steps


def reached(step: int) -> None:
    """Report a training step at which a fault is due, and wait until it has been injected. Called on each rank after
    each step; a later step than the one that is due counts too."""
    steps = pending()
    while steps and step >= steps[0]:
        due = steps.pop(0)
        report.append(report.Reached(due))
        over, end = Path(f"{os.environ[report.VARIABLE]}.{due}"), time.monotonic() + PATIENCE
        while not over.exists() and time.monotonic() < end:
            time.sleep(0.002)
        while over.exists() and over.read_text(encoding="utf-8") == HANG:
            time.sleep(1.0)
