"""The command `python SCRIPT` or `python -m MODULE`: its variables of `sys`, and how it is run."""

from __future__ import annotations

import builtins
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from traceback import print_exception
from types import CodeType, TracebackType
from typing import Any

INTERRUPTED = -int(signal.SIGINT)
"""The code of a program that a KeyboardInterrupt has ended: Python then ends itself by the signal."""


@dataclass(frozen=True)
class PythonCommand:
    """A Python program of this interpreter.

    script, module:     one of them
    arguments:          sys.argv
    original_arguments: sys.orig_argv, also the arguments of the process
    options:            of the interpreter
    executable:         sys.executable
    search_path:        sys.path[0]
    code:               the compiled script
    """

    script: str
    module: str
    arguments: Sequence[str]
    original_arguments: Sequence[str]
    options: Sequence[str]
    executable: str
    search_path: str
    code: CodeType | None

    def run(self) -> int:
        """Run the program as `__main__`, report its exception as the interpreter does, and return its exit code; if
        negative, the number of the signal by which this process must end."""
        failure = None
        try:
            if self.code is None:
                _run_module(self.module)
            else:
                _run_script(self.code)
        except BaseException as error:
            failure = error.with_traceback(_below_this_package(error.__traceback__))
        if failure is None:
            return 0
        _flush()
        return _report(failure)


def resolve(program: Mapping[str, Any], environment: Mapping[str, str]) -> PythonCommand | None:
    """Return the command of a program; None if only a new interpreter can run it. This process must have its working
    directory.

    program:     as of `programs.PythonProgram`
    environment: of the rank
    """
    name = program["executable_name"]
    found = os.path.abspath(name) if os.sep in name else _found(name, environment.get("PATH", os.defpath))
    if not found or not os.path.exists(found) or os.path.realpath(found) != os.path.realpath(sys.executable):
        return None
    module, script = program["module"], program["script"]
    if module:
        chosen, search_path = ["-m", module], os.getcwd()
        first, code = "-m", None
    else:
        code = _compiled(os.path.join(os.getcwd(), script)) if os.path.isfile(script) else None
        if code is None:
            return None
        chosen, search_path = [script], os.path.dirname(os.path.realpath(script))
        first = script
    return PythonCommand(
        script,
        module,
        [first, *program["arguments"]],
        [name, *program["options"], *chosen, *program["arguments"]],
        program["options"],
        found,
        search_path,
        code,
    )


def _found(name: str, path: str) -> str:
    """Return the executable of that name on a search path; "" if there is none."""
    candidates = (os.path.join(folder or ".", name) for folder in path.split(os.pathsep))
    return next((file for file in candidates if os.path.isfile(file) and os.access(file, os.X_OK)), "")


def _compiled(file: str) -> CodeType | None:
    """Return the code of a script; None if it cannot be compiled, which a new interpreter explains best."""
    try:
        with open(file, "rb") as stream:
            code: CodeType = compile(stream.read(), file, "exec", dont_inherit=True)
    except Exception:
        return None
    return code


def _run_script(code: CodeType) -> None:
    variables = vars(sys.modules["__main__"])
    variables["__file__"] = code.co_filename
    variables["__cached__"] = None
    variables["__loader__"] = SourceFileLoader("__main__", code.co_filename)
    exec(code, variables)


def _run_module(module: str) -> None:
    import runpy  # not in the modules of a script

    runpy._run_module_as_main(module)  # type: ignore[attr-defined]


def _below_this_package(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    return traceback


def _flush() -> None:
    for stream in (sys.stderr, sys.stdout):
        with suppress(Exception):
            stream.flush()


def _report(error: BaseException) -> int:
    """Return the exit code of a program that has ended with this exception."""
    if isinstance(error, SystemExit):
        return _exit_code(error)
    sys.last_type, sys.last_value, sys.last_traceback = type(error), error, error.__traceback__
    if sys.version_info >= (3, 12):
        sys.last_exc = error
    try:
        sys.excepthook(type(error), error, error.__traceback__)
    except SystemExit as exit_of_hook:
        return _exit_code(exit_of_hook)
    except BaseException as failure:
        print("Error in sys.excepthook:", file=sys.stderr)
        print_exception(failure.with_traceback(_below_this_package(failure.__traceback__)))
        print("\nOriginal exception was:", file=sys.stderr)
        print_exception(error)
    return INTERRUPTED if isinstance(error, KeyboardInterrupt) else 1


def _exit_code(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    builtins.print(error.code, file=sys.stderr)
    return 1
