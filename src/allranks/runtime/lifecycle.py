"""The lifecycle of a rank: connect, run the training, record a failure, close what is open, and exit.

It is the same with torch, TensorFlow, Horovod and sockets. They differ in how they connect and disconnect."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import NoReturn, Protocol

from allranks.runtime import clean_exit
from allranks.runtime.clean_exit import EVICTED
from allranks.runtime.metrics.metrics import Metrics

TIMEOUT_SECONDS = float(os.environ.get("ALLRANKS_TIMEOUT_SECONDS", "600"))
"""Time limit for the other ranks, at the start and in every collective. torch's default is half an hour, which is
expensive on a rented cluster. TensorFlow would wait for ever."""

WATCH_SECONDS = 0.5
"""Interval between searches for lost ranks."""

_STATUS = {0: "FINISHED", EVICTED: "KILLED", clean_exit.INTERRUPTED: "KILLED"}
"""MLflow's status of a run for each exit code; any other code is FAILED."""


class Closable(Protocol):
    """An object with a thread, which the end of a training closes before it disconnects the ranks."""

    def close(self) -> None:
        """Complete the work in progress and stop the thread."""

    def abandon(self) -> None:
        """Stop the thread soon. Called if the training failed: other ranks may have ended. Must not raise."""


OPEN: set[Closable] = set()
"""Open objects, which are closed at the end of the training. An object that is closed before removes itself."""


def close_all() -> None:
    """Close the objects of this process."""
    for item in list(OPEN):
        item.close()


def abandon_all() -> None:
    """Abandon the objects of this process."""
    for item in list(OPEN):
        item.abandon()


class Watch:
    """Search for lost ranks in a daemon thread until `stop`.

    find_lost: returns an error that names a lost rank, or None
    lost:      called at most once, in that thread, with that error. It must end the process: the main thread may wait
               inside a library, where no exception reaches it
    """

    def __init__(self, find_lost: Callable[[], ConnectionError | None], lost: Callable[[ConnectionError], None]):
        self._find_lost, self._lost = find_lost, lost
        self._stop = threading.Event()
        self._ending = threading.Lock()
        threading.Thread(target=self._work, name="allranks-watch", daemon=True).start()

    def stop(self) -> None:
        """Stop searching. If `lost` has been called, do not return."""
        if not self._stop.is_set():
            self._ending.acquire()
            self._stop.set()

    def _work(self) -> None:
        while not self._stop.wait(WATCH_SECONDS):
            error = self._find_lost()
            if error is not None:
                if self._ending.acquire(blocking=False):
                    self._lost(error)
                return


@dataclass
class Ending:
    """Actions at the end of a rank, in this order. The `connect` function sets them.

    watch:      search for lost ranks, to stop
    wait:       waits for the other ranks, so that a rank that finishes early does not count as lost; only after a
                success or an eviction, which end every rank at the same step
    metrics:    are closed
    disconnect: called with the exit code
    """

    watch: Watch | None = None
    wait: Callable[[], object] | None = None
    metrics: Metrics | None = None
    disconnect: Callable[[int], object] | None = None

    def watch_for(self, find_lost: Callable[[], ConnectionError | None]) -> None:
        """Watch for lost ranks. A lost rank is recorded as this rank's failure and ends this process."""
        self.watch = Watch(find_lost, self._end_process)

    def stop_watch(self) -> None:
        """Stop the watch, if there is one."""
        if self.watch:
            self.watch.stop()

    def close(self, code: int) -> None:
        """Close the metrics and disconnect."""
        if self.metrics:
            self.metrics.close(_STATUS.get(code, "FAILED"))
        if self.disconnect:
            self.disconnect(code)

    def _end_process(self, error: ConnectionError) -> NoReturn:
        code = clean_exit.record(error)
        if self.metrics:
            self.metrics.close("FAILED")
        clean_exit.leave_now(code)


def run(connect: Callable[[Ending], Callable[[], object]]) -> NoReturn:
    """Connect the ranks, do this rank's work, and exit.

    connect: connects, fills in the ending, and returns the work

    Exit codes: 0 success, 1 an exception (recorded with its traceback) or a rank that was lost, 2 wrong input (an
    InputError), 143 saved and stopped for an eviction, 130 Ctrl-C. SystemExit determines its own code.
    """
    ending = Ending()
    try:
        work = connect(ending)
        try:
            work()
        except SystemExit as ended:
            if ended.code:  # sys.exit(0) is a success, which waits for its last checkpoint
                raise
        close_all()
        if ending.wait:
            ending.wait()
        ending.stop_watch()
        code = 0
    except BaseException as error:
        ending.stop_watch()
        # Recorded first: the rank that failed first is the cause, and the others failed because they lost it.
        code = clean_exit.record(error)
        abandon_all()
        if code == EVICTED and ending.wait:
            with suppress(Exception):
                ending.wait()
    try:
        ending.close(code)
    except BaseException as error:
        code = clean_exit.record(error)
    clean_exit.leave(code)
