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

    descriptor: of the open file, which forked processes share; -1: nothing is logged
    process:    the name of this process in the log
    """

    def __init__(self, descriptor: int, process: str) -> None:
        self.descriptor = descriptor
        self._process = process
        self._least = os.environ.get(_LEVEL_VARIABLE, "info").lower()

    @classmethod
    def open(cls, path: str, process: str) -> ProcessLog:
        """Open the file of the log. path: "" for no log. If the file cannot be opened, nothing is logged."""
        with contextlib.suppress(OSError):
            if path:
                return cls(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), process)
        return cls(-1, process)

    def write(self, event: str, level: str = "info", **data: Any) -> None:
        """Append a line. event: a constant text that names what happened; data: more fields of the line"""
        if self.descriptor < 0 or (self._least in _LEVELS and _LEVELS.index(level) < _LEVELS.index(self._least)):
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
        with contextlib.suppress(OSError):  # a full disk must not end the run
            os.write(self.descriptor, json.dumps(line).encode() + b"\n")


def how_ended(code: int) -> dict[str, Any]:
    """Return the exit code, or the number of the signal, by which a process ended, as fields of a line.

    code: as of os.waitstatus_to_exitcode
    """
    return {"exit_code": code} if code >= 0 else {"signal": -code}
