"""Run a Python program in a forked process as the interpreter would, and end the process as the interpreter would, but
without its finalization.

The destructors of C++ libraries would write to memory that the ranks still share, and libtorch's race with the threads
of gloo (`terminate called without an active exception`).
"""

import atexit
import ctypes
import gc
import io
import os
import signal
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from traceback import print_exception
from types import CodeType, ModuleType, TracebackType
from typing import Any, NoReturn

from allranks.contract import report
from allranks.local.forkserver import flight_recorder
from allranks.local.forkserver.preloaded import Preloaded
from allranks.local.forkserver.request import Request

INTERRUPTED = -int(signal.SIGINT)
"""The exit code of a program that ended with KeyboardInterrupt: Python then ends itself with the signal."""


@dataclass(frozen=True)
class PythonCommand:
    """A Python program of this interpreter.

    module:      the module of `python -m`; "" for a script
    arguments:   sys.argv
    search_path: sys.path[0]
    code:        the compiled script
    """

    module: str
    arguments: Sequence[str]
    search_path: str
    code: CodeType | None

    def run(self) -> int:
        """Run the program as `__main__`, report its exception as the interpreter does, and return its exit code; if
        negative, the number of the signal by which this process must end."""
        failure, process = None, os.getpid()
        try:
            if self.code is None:
                import runpy  # not in the modules of a script

                runpy._run_module_as_main(self.module)  # type: ignore[attr-defined]
            else:
                variables = vars(sys.modules["__main__"])
                variables["__file__"] = self.code.co_filename
                variables["__cached__"] = None
                variables["__loader__"] = SourceFileLoader("__main__", self.code.co_filename)
                exec(self.code, variables)
        except BaseException as error:
            failure = error.with_traceback(_below_this_package(error.__traceback__))
        if failure is None:
            return 0
        if os.getpid() == process:  # not a process that the script has forked
            _record(failure)
        _flush_stream(sys.stderr)
        _flush_stream(sys.stdout)
        return _report(failure)


def resolve(request: Request, preloaded: Preloaded) -> PythonCommand | None:
    """Return the command of a request; None if only a new interpreter can run it. The working directory must be set to
    that of the request."""
    script = request.script
    if request.module:
        command = PythonCommand(request.module, ["-m", *request.arguments], os.getcwd(), None)
    elif os.path.isfile(script) and (code := _compile(os.path.join(os.getcwd(), script))):
        command = PythonCommand("", [script, *request.arguments], os.path.dirname(os.path.realpath(script)), code)
    else:
        return None
    return None if _hides_imported(command.search_path, preloaded) else command


def _hides_imported(folder: str, preloaded: Preloaded) -> bool:
    """Return whether a module in a folder has the name of one that has been imported from elsewhere."""
    imported = {name.partition(".")[0] for name in preloaded.modules} - {"allranks", "__main__"}
    with os.scandir(folder) as entries:
        return any(
            entry.name.partition(".")[0] in imported
            and (entry.name.endswith((".py", ".so")) or os.path.exists(os.path.join(entry.path, "__init__.py")))
            for entry in entries
        )


def _compile(file: str) -> CodeType | None:
    """Return the code of a script; None if it does not compile: a new interpreter then reports the error."""
    try:
        with open(file, "rb") as stream:
            code: CodeType = compile(stream.read(), file, "exec", dont_inherit=True)
    except Exception:
        return None
    return code


def _record(error: BaseException) -> None:
    """Report the exception that ended the program, even if the script does not use this package."""
    if not isinstance(error, (SystemExit, KeyboardInterrupt)) or isinstance(getattr(error, "code", None), str):
        report.append(report.failure_of(error))


def _below_this_package(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    return traceback


def _report(error: BaseException) -> int:
    """Return the exit code of a program that has ended with this exception."""
    if isinstance(error, SystemExit):
        return report.exit_code_of(error)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error  # novermin
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except SystemExit as exit_of_hook:
        return report.exit_code_of(exit_of_hook)
    except BaseException as failure:
        print("Error in sys.excepthook:", file=sys.stderr)
        print_exception(failure.with_traceback(_below_this_package(failure.__traceback__)))
        print("\nOriginal exception was:", file=sys.stderr)
        print_exception(error)
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


FLUSH_FAILED = 120
"""The exit code of Python if its output cannot be written."""


def leave(code: int, preloaded: Preloaded) -> NoReturn:
    """Wait for threads, run exit functions, delete the script's objects, flush all output and exit.

    code: the exit code; if negative, the number of the signal to end with
    """
    flight_recorder.save()
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        _delete_objects(preloaded)
        _finalise_mpi()
        if not _flush_output() and code == 0:
            code = FLUSH_FAILED
        ctypes.CDLL(None).fflush(None)
    finally:
        if code < 0:
            signal.signal(-code, signal.SIG_DFL)
            os.kill(os.getpid(), -code)
        os._exit(code & 0xFF)


def _finalise_mpi() -> None:
    """Finalize MPI, which mpi4py normally does at interpreter exit. mpirun treats a rank that did not as failed."""
    mpi: Any = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return
    settings: Any = sys.modules["mpi4py"].rc
    if settings.initialize if settings.finalize is None else settings.finalize:
        _flush_output()
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
    """Return whether a module belongs to the script, not to an installed package."""
    file = getattr(module, "__file__", None) or ""
    return module.__name__ == "__main__" or ("site-packages" not in file and not file.startswith(sys.base_prefix))


def _flush_output() -> bool:
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
