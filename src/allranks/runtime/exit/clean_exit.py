"""End a rank without the interpreter's finalisation."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn

from allranks.contract import report
from allranks.runtime.exit.eviction import EVICTED

FAILED_EXIT_SECONDS = 30.0
"""Time limit for the exit functions of a failed rank, while the other ranks wait for its exit."""


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
            _end_within(FAILED_EXIT_SECONDS, code)
        atexit._run_exitfuncs()
        _finalise_mpi(code)
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # closed, a broken pipe, or None
                stream.flush()
        os._exit(code)


def _end_within(seconds: float, code: int) -> None:
    timer = threading.Timer(seconds, os._exit, args=(code,))
    timer.daemon = True
    timer.start()


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
