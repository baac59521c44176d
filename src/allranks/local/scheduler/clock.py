"""The scheduler's sense of time, and how it is woken."""

from __future__ import annotations

import select
import signal
import socket
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Protocol

LONGEST = 30.0
"""Seconds that a wait lasts at most: the machine's clock may be set, and a laptop may have slept."""

GLANCE = 1.0
"""Seconds between looks at something that cannot wake the scheduler: a run that another scheduler started."""


class Clock(Protocol):
    """What the scheduler asks for the time and waits by."""

    def now(self) -> datetime:
        """Return the time, with its zone."""

    def wait(self, until: datetime | None, *, children: bool, glance: bool) -> None:
        """Wait until then, or until a signal comes.

        until:    None where nothing will be due
        children: whether processes of this one run, whose end is a signal
        glance:   whether there is something to look at now and then
        """


class SystemClock:
    """The machine's clock. Signals wake it. Use it as a context manager, on the main thread.

    stop: called on SIGINT, SIGTERM and SIGHUP
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop

    def __enter__(self) -> SystemClock:
        self._ears, self._mouth = socket.socketpair()
        self._ears.setblocking(False)
        self._mouth.setblocking(False)
        self._wakeup = signal.set_wakeup_fd(self._mouth.fileno(), warn_on_full_buffer=False)
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        self._handlers = {number: signal.signal(number, lambda *_: self._stop()) for number in numbers}
        # Handled by nobody else, but only what has a handler wakes.
        self._handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup)
        self._ears.close()
        self._mouth.close()

    def now(self) -> datetime:
        return datetime.now(timezone.utc)

    def wait(self, until: datetime | None, *, children: bool, glance: bool) -> None:  # noqa: ARG002
        seconds = LONGEST if until is None else (until - self.now()).total_seconds()
        self.listen(min(max(seconds, 0.0), GLANCE if glance else LONGEST))

    def listen(self, seconds: float) -> None:
        """Wait for a signal, but no longer than so many seconds."""
        if select.select([self._ears], [], [], seconds)[0]:
            self._ears.recv(4096)
