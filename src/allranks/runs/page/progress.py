"""How many steps of a run are in which state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from allranks.runs.records import Status, StepRecord

_ORDER = (
    Status.COMPLETED,
    Status.FAILED,
    Status.CANCELED,
    Status.INTERRUPTED,
    Status.RUNNING,
    Status.PREPARING,
    Status.NOT_STARTED,
    Status.SKIPPED,
)


@dataclass(frozen=True)
class Share:
    """The steps in one state. percent: of all steps"""

    status: Status
    amount: int
    percent: float


def progress(steps: Iterable[StepRecord]) -> list[Share]:
    """Return the states that occur, those of ended steps first."""
    amounts = Counter(step.status for step in steps)
    total = amounts.total()
    return [
        Share(status, amounts[status], round(100 * amounts[status] / total, 2)) for status in _ORDER if amounts[status]
    ]
