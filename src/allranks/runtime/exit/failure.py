"""Record the exception that ended a rank."""

from __future__ import annotations

import sys
import traceback

from allranks.contract import report
from allranks.errors import InputError
from allranks.runtime.exit.eviction import Evicted

INTERRUPTED = 130
"""128 + SIGINT, as a shell reports it."""


def record(error: BaseException) -> int:
    """Report an exception that ended a rank, print it to stderr, and return the process's exit code.

    The code is 2 for an InputError, which is printed without a traceback; the script's own code for SystemExit; 130 for
    Ctrl-C; and 1 for every other exception.
    """
    if isinstance(error, SystemExit):
        code = _exit_code(error)
        if code != 0 and not isinstance(error, Evicted):
            _report(error, f"the script ended itself with exit code {code}")
        return code
    if isinstance(error, KeyboardInterrupt):
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    _report(error, str(error))
    if isinstance(error, InputError):
        print(error, file=sys.stderr)
        return 2
    traceback.print_exception(error)
    return 1


def _report(error: BaseException, message: str) -> None:
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    text = "".join(traceback.format_exception(error))
    report.append(report.Failure(type=name, message=message, traceback=text))


def _exit_code(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    print(error.code, file=sys.stderr)
    return 1
