"""Detect ranks that have ended, while this rank waits inside a library."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Callable, Mapping

INTERVAL_MILLISECONDS = 500
"""How often the thread looks whether it is to stop."""

# Linux: the other end has closed the connection. Not in the typed interface of other systems.
_CLOSED = getattr(select, "POLLRDHUP", 0x2000) | select.POLLHUP | select.POLLERR


class Watch:
    """Watch connections to other ranks in a daemon thread until `stop`, without reading from them.

    connections: by rank
    lost:        called at most once, in that thread, with a ConnectionError that names a rank that has ended. It must
                 end the process: the main thread may wait inside a library, where no exception reaches it
    """

    def __init__(self, connections: Mapping[int, socket.socket], lost: Callable[[ConnectionError], None]) -> None:
        self._ranks = {connection.fileno(): rank for rank, connection in connections.items()}
        self._lost = lost
        self._stop = threading.Event()
        self._ending = threading.Lock()
        if connections:
            threading.Thread(target=self._work, name="allranks-watch", daemon=True).start()

    def stop(self) -> None:
        """Stop watching. If `lost` has been called, do not return."""
        if not self._stop.is_set():
            self._ending.acquire()
            self._stop.set()

    def _work(self) -> None:
        poll = select.poll()
        for descriptor in self._ranks:
            poll.register(descriptor, _CLOSED)
        while not self._stop.is_set():
            for descriptor, _ in poll.poll(INTERVAL_MILLISECONDS):
                if self._ending.acquire(blocking=False):
                    self._lost(ConnectionError(f"rank {self._ranks[descriptor]} has ended; its own log says why"))
                return
