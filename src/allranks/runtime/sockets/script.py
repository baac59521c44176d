"""The main function of a script whose ranks are connected by sockets."""

from __future__ import annotations

import os
import select
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NoReturn

from allranks.contract import world
from allranks.contract.detect import detect
from allranks.contract.own_variables import join_seconds
from allranks.runtime.exit import clean_exit, failure
from allranks.runtime.exit.eviction import EVICTED
from allranks.runtime.metrics.metrics import Metrics
from allranks.runtime.sockets.ranks import Ranks
from allranks.runtime.sockets.rendezvous import connect

TIMEOUT_SECONDS = 600.0
"""How long a rank waits for the others at the start, and in every collective."""

_STATUS = {0: "FINISHED", EVICTED: "KILLED", failure.INTERRUPTED: "KILLED"}
_INTERVAL_MILLISECONDS = 500
"""How often the thread looks whether it is to stop."""
_CLOSED = getattr(select, "POLLRDHUP", 0x2000) | select.POLLHUP | select.POLLERR


def main(function: Callable[[Ranks], None], *, timeout_seconds: float = TIMEOUT_SECONDS) -> NoReturn:
    """Connect the ranks, call function(ranks), and exit.

    function:        what every rank does
    timeout_seconds: how long a rank waits for the others

    A rank that ends early ends the others within a second, also while they wait inside a library such as LightGBM,
    which would wait for minutes.

    Exit codes: 0 success, 1 an exception (recorded with its traceback) or a rank that was lost, 2 wrong input (an
    InputError), 143 saved and stopped for an eviction, 130 Ctrl-C. SystemExit determines its own code.
    """
    metrics = None
    watch = None
    try:
        env = detect()
        world.check(env)
        connections = connect(env, timeout_seconds, join_seconds(os.environ, timeout_seconds))
        metrics = Metrics(is_main=env.rank == 0)
        ranks = Ranks(env, metrics, connections)
        watch = _Watch(connections, lambda error: _end_process(error, ranks.metrics))
        function(ranks)
        _part(ranks, watch)
        code = 0
    except BaseException as error:
        if watch is not None:
            watch.stop()
        code = failure.record(error)
        if code == EVICTED:  # every rank ends so, at the same step
            with suppress(OSError):
                _part(ranks, watch)
    if metrics is not None:
        metrics.close(_STATUS.get(code, "FAILED"))
    clean_exit.leave(code)


def _part(ranks: Ranks, watch: _Watch | None) -> None:
    """Wait until every rank has finished, so that one that finishes early does not count as lost."""
    if watch is not None:
        watch.stop()
    ranks.barrier()


def _end_process(error: ConnectionError, metrics: Metrics) -> NoReturn:
    code = failure.record(error)
    metrics.close("FAILED")
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


# Linux: the other end has closed the connection. Not in the typed interface of other systems.


class _Watch:
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
            for descriptor, _ in poll.poll(_INTERVAL_MILLISECONDS):
                if self._ending.acquire(blocking=False):
                    self._lost(ConnectionError(f"rank {self._ranks[descriptor]} has ended; its own log says why"))
                return
