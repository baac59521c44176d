"""The scheduler's clock, and the signals that wake it."""

from __future__ import annotations

import select
import signal
import socket
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Protocol

LONGEST = 30.0
"""Maximum seconds of a wait, because the machine's clock may be changed, or a laptop suspended."""

GLANCE = 1.0
"""Seconds between polls of a run that an earlier scheduler started, whose end sends no signal."""


class Clock(Protocol):
    """The clock's interface for the scheduler."""

    def now(self) -> datetime:
        """Return the current time, with a time zone."""

    def wait(self, until: datetime | None, *, children: bool, glance: bool) -> None:
        """Wait until a time, or until a signal arrives.

        until:    None if nothing is due
        children: whether child processes are running, whose end sends a signal
        glance:   whether to return after GLANCE seconds at the latest, to poll
        """


class SystemClock:
    """The machine's clock. Signals wake it. Use it as a context manager, on the main thread.

    stop: called on SIGINT, SIGTERM and SIGHUP
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop

    def __enter__(self) -> SystemClock:
        self._receiver, self._sender = socket.socketpair()
        self._receiver.setblocking(False)
        self._sender.setblocking(False)
        self._wakeup = signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        self._handlers = {number: signal.signal(number, lambda *_: self._stop()) for number in numbers}
        # Only signals with a handler wake the scheduler.
        self._handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup)
        self._receiver.close()
        self._sender.close()

    def now(self) -> datetime:
        return datetime.now(timezone.utc)

    def wait(self, until: datetime | None, *, children: bool, glance: bool) -> None:  # noqa: ARG002
        seconds = LONGEST if until is None else (until - self.now()).total_seconds()
        self.listen(min(max(seconds, 0.0), GLANCE if glance else LONGEST))

    def listen(self, seconds: float) -> None:
        """Wait for a signal, for at most `seconds`."""
        if select.select([self._receiver], [], [], seconds)[0]:
            self._receiver.recv(4096)
