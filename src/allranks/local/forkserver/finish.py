"""End a forked rank, as the interpreter ends but without its finalisation.

The destructors of C++ libraries would write to memory that the ranks still share, and libtorch's race with the threads
of gloo (`terminate called without an active exception`).
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import io
import os
import signal
import sys
import threading
from types import ModuleType
from typing import Any, NoReturn

from allranks.local.forkserver.preloaded import Preloaded

FLUSH_FAILED = 120
"""The exit code of Python if its output cannot be written."""


def leave(code: int, preloaded: Preloaded) -> NoReturn:
    """Wait for threads, run exit functions, delete the script's objects, flush all output and exit.

    code: if negative, the number of a signal by which to end
    """
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        _delete_objects(preloaded)
        _finalise_mpi()
        if not _flush() and code == 0:
            code = FLUSH_FAILED
        ctypes.CDLL(None).fflush(None)
    finally:
        if code < 0:
            signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
        os._exit(code & 0xFF)


def _finalise_mpi() -> None:
    """Do what mpi4py leaves to the interpreter's end. mpirun treats a rank that did not finalise as failed."""
    mpi: Any = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return
    settings: Any = sys.modules["mpi4py"].rc
    if settings.initialize if settings.finalize is None else settings.finalize:
        _flush()
        mpi.Finalize()


def _delete_objects(preloaded: Preloaded) -> None:
    """Delete the objects of the script and of its own modules, so that files are closed and `__del__` is called."""
    if len(threading.enumerate()) > 1:
        # At the interpreter's end, daemon threads no longer run. Here they would find their objects deleted.
        for item in gc.get_objects():
            if isinstance(item, (io.TextIOWrapper, io.BufferedWriter)):
                _flush_stream(item)
        return
    gc.collect()
    own = [module for name, module in list(sys.modules.items()) if name == "__main__" or name not in preloaded.modules]
    own.sort(key=lambda module: getattr(module, "__name__", "") != "__main__")
    script_modules = [module for module in own if isinstance(module, ModuleType) and _is_script_module(module)]
    for module in script_modules:
        variables = vars(module)
        for hidden in (True, False):
            for name in list(variables):
                if name != "__builtins__" and name.startswith("_") == hidden:
                    variables[name] = None
    gc.collect()


def _is_script_module(module: ModuleType) -> bool:
    """Return whether a module is one of the script, not of an installed package."""
    file = getattr(module, "__file__", None) or ""
    return module.__name__ == "__main__" or ("site-packages" not in file and not file.startswith(sys.base_prefix))


def _flush() -> bool:
    """Flush the standard streams. Return whether stdout could be written."""
    error = _flush_stream(sys.stdout)
    if error is not None and sys.stderr is not None:
        where = "on flushing sys.stdout:" if sys.version_info >= (3, 13) else f"in: {sys.stdout!r}"
        sys.stderr.write(f"Exception ignored {where}\n{type(error).__name__}: {error}\n")
    _flush_stream(sys.stderr)
    return error is None


def _flush_stream(stream: Any) -> Exception | None:
    """Return the error if it cannot be written."""
    try:
        if stream is not None and not stream.closed:
            stream.flush()
    except Exception as error:
        return error
    return None
