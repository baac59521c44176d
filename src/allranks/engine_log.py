"""The engine's log: one file for each run, to which every process of the engine appends one JSON object per line.

Modules log with `logging.getLogger(__name__)`: a constant message names the event, and `extra` has its data:

    _log.info("rank exited", extra={"node": "train", "attempt": 1, "rank": 2, "exit_code": 1})

Each line has "time" (seconds since the epoch), "monotonic" (seconds of a clock that all processes share), "process",
"pid", "level", "logger", "event", and the keys of `extra`. Events contain no values of a user's inputs or variables.
Events of level INFO contain only names, states and numbers, so they are not searched for secrets, which saves two
thirds of the cost.
"""

import json
import logging
import os
import time
from collections.abc import Callable
from typing import Any

FILE = "engine.log"
"""The name of the file in a run's folder."""

LEVEL_VARIABLE = "ALLRANKS_LOG"
"""The variable with the log level: debug, info (the default), warning or error."""

_ROOT = "allranks"
_RECORD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime"}


class _Lines(logging.Handler):
    """Append each record to a file as one JSON object, in a single write, so that lines of several processes do not
    mix."""

    def __init__(self, path: str, process: str, mask: Callable[[str], str]) -> None:
        super().__init__()
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        self._process, self._mask = process, mask

    def emit(self, record: logging.LogRecord) -> None:
        line: dict[str, Any] = {
            "time": round(record.created, 6),
            "monotonic": round(time.monotonic(), 6),
            "process": self._process,
            "pid": os.getpid(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        line |= {key: value for key, value in vars(record).items() if key not in _RECORD}
        if record.exc_info:
            line["exception"] = logging.Formatter().formatException(record.exc_info)
        text = json.dumps(line, default=str)
        if record.levelno != logging.INFO:
            text = self._mask(text)
        try:
            os.write(self._file, text.encode() + b"\n")
        except OSError:  # a full disk must not end the run
            self.handleError(record)

    def handleError(self, record: logging.LogRecord) -> None:
        """Drop the record."""

    def close(self) -> None:
        os.close(self._file)
        super().close()


def start(path: str, process: str, mask: Callable[[str], str] = str) -> Callable[[], None]:
    """Write the messages of allranks' loggers in this process to `path`. Return a function that stops this.

    process: the name of this process in the log, such as "supervisor"
    mask:    replaces the secrets in a line

    A process that forks calls this again in the child, whose lines then have the child's name. Raise OSError if the
    file cannot be opened.
    """
    logger = logging.getLogger(_ROOT)
    stop()
    handler = _Lines(path, process, mask)
    logger.addHandler(handler)
    logger.setLevel(os.environ.get(LEVEL_VARIABLE, "info").upper())
    logger.propagate = False
    return stop


def stop() -> None:
    """Close the file of this process's log."""
    logger = logging.getLogger(_ROOT)
    for handler in [handler for handler in logger.handlers if isinstance(handler, _Lines)]:
        logger.removeHandler(handler)
        handler.close()
    logger.propagate = True
