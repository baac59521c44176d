"""End a rank: record the exception that ended it, and exit without the interpreter's finalisation.

For the eviction of a low-priority instance, Azure ML sends SIGTERM first, and SIGKILL about 30 seconds later.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
import traceback
import weakref
from contextlib import suppress
from types import FrameType
from typing import NoReturn

from allranks.contract import report
from allranks.errors import InputError

EVICTED = 143
"""The exit code of a training that saved a checkpoint and stopped because of an eviction: 128 + SIGTERM."""

REPEATED_SECONDS = 5.0
"""Time after a SIGTERM in which further ones count as the same request."""
_evictions: weakref.WeakSet[Eviction] = weakref.WeakSet()
_requested_at = 0.0
INTERRUPTED = 130
"""128 + SIGINT, as a shell reports it."""
FAILED_EXIT_SECONDS = 30.0
"""Time limit for the exit functions of a failed rank, while the other ranks wait for its exit."""


class Evicted(SystemExit):
    """Ends a training after its checkpoint was saved, on every rank at the same step, with exit code 143."""

    def __init__(self) -> None:
        super().__init__(EVICTED)


class Eviction:
    """Record whether this process has received SIGTERM. Must be constructed on the main thread.

    A launcher may pass on a SIGTERM that the platform has sent to every process: torchrun does. So SIGTERM counts once
    for `REPEATED_SECONDS`, for all objects of this class. A later one ends the process immediately.
    """

    def __init__(self) -> None:
        self.requested = False
        self._process = os.getpid()
        _evictions.add(self)
        signal.signal(signal.SIGTERM, _on_sigterm)

    @property
    def is_forked(self) -> bool:
        """Whether this is a copy in a forked process, such as a DataLoader's worker, with no checkpoint to save."""
        return os.getpid() != self._process


def _on_sigterm(_number: int, _frame: FrameType | None) -> None:
    global _requested_at
    own = [eviction for eviction in _evictions if not eviction.is_forked]
    new = [eviction for eviction in own if not eviction.requested]
    now = time.monotonic()
    if new:
        _requested_at = now
    for eviction in new:
        eviction.requested = True
    if not own or now - _requested_at > REPEATED_SECONDS:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)


def record(error: BaseException) -> int:
    """Report an exception that ended a rank, print it to stderr, and return the process's exit code.

    The code is 2 for an InputError, which is printed without a traceback; the script's own code for SystemExit; 130 for
    Ctrl-C; and 1 for every other exception.
    """
    if isinstance(error, SystemExit):
        code = report.exit_code_of(error)
        if code != 0 and not isinstance(error, Evicted):
            _report(error, f"the script ended itself with exit code {code}")
        return code
    if isinstance(error, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    _report(error)
    if isinstance(error, InputError):
        print(error, file=sys.stderr)
        return 2
    traceback.print_exception(error)
    return 1


def leave(code: int) -> NoReturn:
    """Exit this process with a code, without the interpreter's finalisation.

    Finalisation races with gloo's worker threads: torch 2.13 then aborts (`terminate called without an active
    exception`, SIGABRT) after a successful training. This function therefore joins threads, runs exit functions,
    finalises MPI and flushes output itself, and then exits immediately.

    Exit code 0 is reported as soon as the threads are joined. If a library aborts in its exit functions, the engine
    then knows that the training was completed."""
    try:
        if code == 0:
            # Joins threads and ends the idle workers of thread pools. The interpreter calls the same function.
            threading._shutdown()  # type: ignore[attr-defined]
            report.append(report.Finished())
        else:
            timer = threading.Timer(FAILED_EXIT_SECONDS, os._exit, args=(code,))
            timer.daemon = True
            timer.start()
        atexit._run_exitfuncs()
        _finalise_mpi(code)
    finally:
        leave_now(code)


def leave_now(code: int) -> NoReturn:
    """Flush output and exit immediately, also from a thread or a signal handler while the main thread is busy."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # closed, a broken pipe, or None
            stream.flush()
    os._exit(code)


def _report(error: BaseException, message: str | None = None) -> None:
    report.append(report.failure_of(error, message))


def _finalise_mpi(code: int) -> None:
    # mpi4py finalises MPI at the interpreter's exit, which is skipped here. mpirun treats a rank that did not finalise
    # as failed.
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return
    sys.stdout.flush()
    sys.stderr.flush()
    if code in (0, EVICTED):
        mpi.Finalize()
    else:
        mpi.COMM_WORLD.Abort(code)  # otherwise the other ranks would wait for this one for ever
