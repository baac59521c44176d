"""The command `python SCRIPT` or `python -m MODULE`: its variables of `sys`, and how it is run."""

from __future__ import annotations

import builtins
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from traceback import print_exception
from types import CodeType, TracebackType
from typing import Any

from allranks.local.starter.preloaded import Preloaded

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
    """

    script: str
    module: str
    arguments: Sequence[str]
    original_arguments: Sequence[str]
    options: Sequence[str]
    executable: str
    search_path: str

    def run(self, preloaded: Preloaded) -> int:
        """Run the program as `__main__`, report its exception as the interpreter does, and return its exit code; if
        negative, the number of the signal by which this process must end."""
        try:
            if self.module:
                _run_module(self.module)
            else:
                _run_script(self.script)
        except BaseException as error:
            return _report(error.with_traceback(_below_this_package(error.__traceback__)), preloaded)
        return 0


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
        first = "-m"
    else:
        if not os.path.isfile(script) or not os.access(script, os.R_OK):
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
    )


def _found(name: str, path: str) -> str:
    """Return the executable of that name on a search path; "" if there is none."""
    candidates = (os.path.join(folder or ".", name) for folder in path.split(os.pathsep))
    return next((file for file in candidates if os.path.isfile(file) and os.access(file, os.X_OK)), "")


def _run_script(script: str) -> None:
    file = os.path.join(os.getcwd(), script)
    variables = vars(sys.modules["__main__"])
    variables["__file__"] = file
    variables["__cached__"] = None
    variables["__loader__"] = SourceFileLoader("__main__", file)
    with open(file, "rb") as stream:
        code: CodeType = compile(stream.read(), file, "exec", dont_inherit=True)
    exec(code, variables)


def _run_module(module: str) -> None:
    import runpy  # not in the modules of a script

    runpy._run_module_as_main(module)  # type: ignore[attr-defined]


def _below_this_package(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_frame.f_code.co_filename == __file__:
        traceback = traceback.tb_next
    return traceback


def _report(error: BaseException, preloaded: Preloaded) -> int:  # noqa: ARG001
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
