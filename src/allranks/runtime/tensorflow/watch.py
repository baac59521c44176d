"""Detect tasks that have ended. TensorFlow itself waits for them for ever."""

from __future__ import annotations

import select
import socket
import threading
import time
from collections.abc import Callable, Mapping

from allranks.contract import variables

INTERVAL_SECONDS = 0.5
"""Pause between two probes of a task."""

SILENT_SECONDS = 15.0
"""How long a task that has answered before may be silent. If its port is closed, it counts as lost immediately."""


class Sight:
    """The results of probing one task. A task listens from its start to its end."""

    def __init__(self, endpoint: str) -> None:
        self.endpoint = endpoint
        self.appeared = False
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


class Watch:
    """Probe other tasks in a daemon thread until `stop`.

    tasks:           name -> `host:port`
    timeout_seconds: how long a task may take to appear
    lost:            called at most once, in that thread, with a ConnectionError that names a task that has not appeared
                     or has ended. It must end the process: the main thread waits inside TensorFlow, where no exception
                     reaches it
    """

    def __init__(
        self, tasks: Mapping[str, str], *, timeout_seconds: float, lost: Callable[[ConnectionError], None]
    ) -> None:
        self._sights = {name: Sight(endpoint) for name, endpoint in tasks.items()}
        self._timeout_seconds = timeout_seconds
        self._lost = lost
        self._stop = threading.Event()
        self._ending = threading.Lock()
        threading.Thread(target=self._work, name="allranks-watch", daemon=True).start()

    def stop(self) -> None:
        """Stop probing. If `lost` has been called, do not return."""
        self._stop.set()
        self._ending.acquire()

    def _work(self) -> None:
        while not self._stop.wait(INTERVAL_SECONDS):
            for name, sight in self._sights.items():
                if sight.missing(self._timeout_seconds) and self._ending.acquire(blocking=False):
                    self._lost(lost(name, sight, self._timeout_seconds))
                    return


def lost(name: str, sight: Sight, timeout_seconds: float) -> ConnectionError:
    """Return the error for a task that has ended or has not appeared."""
    reason = "is gone; its own log says why" if sight.appeared else f"did not appear within {timeout_seconds:g} s"
    return ConnectionError(f"{name} at {sight.endpoint} {reason}")


def wait_until_gone(name: str, endpoint: str, timeout_seconds: float, connection: socket.socket | None = None) -> None:
    """Wait for a task's end. Raise ConnectionError if it did not appear within timeout_seconds.

    connection: to the task, which sends nothing. Its end is the task's, also before the task listens
    """
    sight = Sight(endpoint)
    while not sight.missing(timeout_seconds):
        if connection is None:
            time.sleep(INTERVAL_SECONDS)
        elif select.select([connection], [], [], INTERVAL_SECONDS)[0]:
            return
    if not sight.appeared:
        raise lost(name, sight, timeout_seconds)
