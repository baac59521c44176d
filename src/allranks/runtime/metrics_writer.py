"""Write logged metrics in the background: to the report file for the live view, and to MLflow."""

from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import SupportsFloat

from allranks.contract import report
from allranks.runtime.notes import note
from allranks.runtime.tracking import Tracking

INTERVAL_SECONDS = 0.5
"""How long metrics are collected before they are written."""

CLOSE_SECONDS = 10.0
"""How long `close` waits for values that are still being computed, by a device or by the other ranks."""


@dataclass(frozen=True)
class Entry:
    """One call of `Metrics.log`. time: of the call, in seconds since the epoch"""

    step: int
    total: int | None
    epoch: int | None
    time: float
    values: Mapping[str, SupportsFloat]


class MetricsWriter:
    """A daemon thread that reads the logged values and writes them, in the order of the calls."""

    def __init__(self, tracking: Tracking | None) -> None:
        self._tracking = tracking
        self._entries: deque[Entry] = deque()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, entry: Entry) -> None:
        """Add an entry to write. After `close`, write it now."""
        self._entries.append(entry)  # without waking the thread, which would interrupt the training
        if self._closing.is_set():
            self._write()
        elif self._thread is None:
            self._thread = threading.Thread(target=self._work, name="allranks-metrics", daemon=True)
            self._thread.start()
            atexit.register(self.close)

    def close(self) -> None:
        """Write all entries, and stop the thread."""
        atexit.unregister(self.close)
        self._closing.set()
        if self._thread is None:
            return
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            note(f"the last metrics were not computed within {CLOSE_SECONDS:g} s: they are missing")

    def _work(self) -> None:
        while not self._closing.wait(INTERVAL_SECONDS):
            self._write()
        self._write()

    def _write(self) -> None:
        events = []
        while self._entries:
            entry = self._entries.popleft()
            figures = _read(entry.values)
            events.append(report.Progress(entry.step, entry.total, figures, entry.epoch, entry.time))
            if self._tracking:
                self._tracking.send(figures, step=entry.step, time=entry.time)
        if events:
            report.append_all(events)


def _read(values: Mapping[str, SupportsFloat]) -> dict[str, float]:
    """Return the values as numbers, without those whose device or other ranks have failed."""
    figures = {}
    for name, value in values.items():
        try:
            figures[name] = float(value)
        except RuntimeError:  # the training fails with the same error
            continue
    return figures
