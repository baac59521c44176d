"""The last values of curves. Only the points that were added since the last request are read."""

import threading
from collections.abc import Mapping
from typing import NamedTuple

from allranks.history.records import StepRecord
from allranks.history.store import Store

MOST = 2000
"""Maximum steps whose values are remembered."""


class _Values(NamedTuple):
    """attempt: of the step, which clears its curves when it is tried again; row: up to which points were read"""

    attempt: int
    row: int
    metrics: Mapping[str, float | None]


class LastValues:
    """The last values of the steps of a folder's runs."""

    def __init__(self) -> None:
        self._steps: dict[tuple[str, str], _Values] = {}
        self._lock = threading.Lock()

    def read(self, store: Store, run: str, step: StepRecord) -> Mapping[str, float | None]:
        """Return the last value of each metric of a step; None if it is not a finite number."""
        with self._lock:
            known = self._steps.pop((run, step.name), None)
        if known is None or known.attempt != step.attempt:
            known = _Values(step.attempt, 0, {})
        values, row = store.last_values(run, step.name, known.row)
        found = _Values(step.attempt, row, {**known.metrics, **values})
        with self._lock:
            self._steps[run, step.name] = found
            while len(self._steps) > MOST:
                del self._steps[next(iter(self._steps))]
        return found.metrics
