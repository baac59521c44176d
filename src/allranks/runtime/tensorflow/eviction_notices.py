"""Notices of an eviction, from the servers of a cluster to its chief, which alone can save."""

from __future__ import annotations

import os
import select
import signal
import socket
import threading
from collections.abc import Iterable
from contextlib import suppress
from types import FrameType

NOTICE = b"evicted\n"

INTERVAL_SECONDS = 0.5
"""Pause between two attempts to pass on a notice, while the training has no handler of SIGTERM yet."""


def send_on_sigterm(chief: socket.socket) -> None:
    """Notify the chief when this process receives SIGTERM, and serve on: the chief saves the servers' variables."""

    def notify(_number: int, _frame: FrameType | None) -> None:
        with suppress(OSError):  # the chief has ended, for which this process waits
            chief.sendall(NOTICE)

    signal.signal(signal.SIGTERM, notify)


def receive(servers: Iterable[socket.socket]) -> None:
    """Treat the first notice of a server as a SIGTERM to this process, in a daemon thread."""
    threading.Thread(target=_receive, args=([*servers],), name="allranks-eviction", daemon=True).start()


def _receive(servers: list[socket.socket]) -> None:
    while servers:
        for server in select.select(servers, [], [])[0]:
            try:
                received = server.recv(len(NOTICE))
            except OSError:
                received = b""
            if received:
                _pass_on()
                return
            servers.remove(server)  # it has ended: the watch says so


def _pass_on() -> None:
    pause = threading.Event()
    while not callable(signal.getsignal(signal.SIGTERM)):  # the signal would end this process
        pause.wait(INTERVAL_SECONDS)
    os.kill(os.getpid(), signal.SIGTERM)
