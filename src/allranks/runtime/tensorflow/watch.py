"""Detect tasks that have ended. TensorFlow itself waits for them for ever."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterable

from allranks.contract import variables
from allranks.runtime.lifecycle import WATCH_SECONDS

SILENT_SECONDS = 15.0
"""How long a task that has answered before may be silent. If its port is closed, it counts as lost immediately."""


class Sight:
    """The results of probing one task, which has a name. A task listens from its start to its end."""

    def __init__(self, name: str, endpoint: str) -> None:
        self.name, self.endpoint, self.appeared = name, endpoint, False
        self._host, self._port = variables.split_endpoint(endpoint)
        self._since = time.monotonic()

    def missing(self, timeout_seconds: float) -> bool:
        """Probe the task. Return whether it has ended, or has not appeared within timeout_seconds."""
        try:
            socket.create_connection((self._host, self._port or 0), timeout=SILENT_SECONDS / 3).close()
        except ConnectionRefusedError:
            if self.appeared:
                return True
        except OSError:
            pass
        else:
            self.appeared, self._since = True, time.monotonic()
        return time.monotonic() - self._since >= (SILENT_SECONDS if self.appeared else timeout_seconds)

    def lost(self, timeout_seconds: float) -> ConnectionError:
        """Return the error for a task that has ended or has not appeared."""
        reason = "is gone; its own log says why" if self.appeared else f"did not appear within {timeout_seconds:g} s"
        return ConnectionError(f"{self.name} at {self.endpoint} {reason}")


def find_lost(sights: Iterable[Sight], timeout_seconds: float) -> ConnectionError | None:
    """Probe tasks. Return an error that names one that has ended, or has not appeared within timeout_seconds; None if
    there is none."""
    return next((sight.lost(timeout_seconds) for sight in sights if sight.missing(timeout_seconds)), None)


def wait_until_gone(name: str, endpoint: str, timeout_seconds: float, connection: socket.socket | None = None) -> None:
    """Wait for a task's end. Raise ConnectionError if it did not appear within timeout_seconds.

    connection: to the task, which sends nothing. Its end is the task's, also before the task listens
    """
    sight = Sight(name, endpoint)
    while not sight.missing(timeout_seconds):
        if connection is None:
            time.sleep(WATCH_SECONDS)
        elif select.select([connection], [], [], WATCH_SECONDS)[0]:
            return
    if not sight.appeared:
        raise sight.lost(timeout_seconds)
