"""Lines of the engine's log from processes that ranks are forked from, in the format of `engine_log`.

These processes do not import `logging`: a script would find it imported, and the import takes 4 ms.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import Any

_LEVELS = ("debug", "info", "warning", "error")
_LEVEL_VARIABLE = "ALLRANKS_LOG"


class ProcessLog:
    """The log of one process.

    process:    the name of this process in the log
    path:       the file. Lines wait until its folder exists; "" for no log
    descriptor: the descriptor of the open file, which forked processes share; -1 if it is not open
    """

    def __init__(self, process: str, path: str = "", descriptor: int = -1) -> None:
        self.descriptor = descriptor
        self._path = path
        self._waiting = b""
        self._process = process
        self._least = os.environ.get(_LEVEL_VARIABLE, "info").lower()

    def for_process(self, process: str) -> ProcessLog:
        """Return the log of a forked process."""
        return ProcessLog(process, self._path, self.descriptor)

    def write(self, event: str, level: str = "info", **data: Any) -> None:
        """Append a line. event: a constant text that names the event; data: further fields of the line"""
        if self.descriptor < 0 and not self._path:
            return
        if self._least in _LEVELS and _LEVELS.index(level) < _LEVELS.index(self._least):
            return
        line = {
            "time": round(time.time(), 6),
            "monotonic": round(time.monotonic(), 6),
            "process": self._process,
            "pid": os.getpid(),
            "level": level,
            "logger": "allranks.local.instances",
            "event": event,
            **data,
        }
        self._waiting += json.dumps(line).encode() + b"\n"
        with contextlib.suppress(OSError):  # a full disk must not end the run
            if self.descriptor < 0 and self._path:
                self.descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
            os.write(self.descriptor, self._waiting)
            self._waiting = b""


def describe_exit(code: int) -> dict[str, Any]:
    """Return the exit code, or the number of the signal, by which a process ended, as fields of a line.

    code: as returned by os.waitstatus_to_exitcode
    """
    return {"exit_code": code} if code >= 0 else {"signal": -code}
