"""Ending a rank without the interpreter's last act."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from contextlib import suppress
from typing import NoReturn

from allranks.contract import report
from allranks.runtime.eviction import EVICTED

FAILED_EXIT_SECONDS = 30.0
"""How long the exit functions of a failed rank may take: its peers wait for its end."""


def leave(code: int) -> NoReturn:
    """End this process with an exit code, as the interpreter would, but for its finalisation.

    gloo's worker threads race with that one: torch 2.13 then aborts (`terminate called without an active exception`,
    SIGABRT) after a training that succeeded. So what a program expects at its end is done here, threads joined, exit
    functions run, MPI finalised, output flushed, and the process ended at once.

    Exit code 0 is reported as soon as the threads are joined. Libraries may still abort in their exit functions; the
    engine then knows that the work was done.
    """
    try:
        if code == 0:
            # Not only joins: it also tells the idle workers of thread pools to end. The interpreter calls the same.
            threading._shutdown()  # type: ignore[attr-defined]
            report.append(report.Finished())
        else:
            _end_within(FAILED_EXIT_SECONDS, code)
        atexit._run_exitfuncs()
        _finalise_mpi(code)
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # closed, a broken pipe, or none at all
                stream.flush()
        os._exit(code)


def _end_within(seconds: float, code: int) -> None:
    timer = threading.Timer(seconds, os._exit, args=(code,))
    timer.daemon = True
    timer.start()


def _finalise_mpi(code: int) -> None:
    # mpi4py finalises in C at the interpreter's end, which is left out here; mpirun takes a rank without for a failure.
    mpi = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return
    sys.stdout.flush()
    sys.stderr.flush()
    if code in (0, EVICTED):
        mpi.Finalize()
    else:
        mpi.COMM_WORLD.Abort(code)  # the other ranks would wait for this one for ever
