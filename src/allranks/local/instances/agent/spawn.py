"""Start a program as a new process."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping
from typing import Any

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE)
"""Signals that a program starts with the default action for, whatever the agent's own handlers are."""


def start(program: Mapping[str, Any]) -> int:
    """Start a process and return its id without waiting. This changes the caller's own working directory to that of the
    program.

    program: as of `programs.Program.data`. Its stdout and stderr are appended to its log, whose folder must exist.

    The process leads its own session, so that a signal to its group also reaches its children. If the folder or the
    program cannot be used, the process exits with code 127 and its log contains the reason.
    """
    arguments, folder, log = program["arguments"], program["folder"], program["log"]
    output = (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    streams = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), output, (os.POSIX_SPAWN_DUP2, 1, 2)]
    try:
        os.chdir(folder)
        # A fork would copy this interpreter's memory map, which takes 2 ms more.
        return os.posix_spawn(
            arguments[0],
            arguments,
            program["environment"],
            file_actions=streams,
            setsid=True,
            setsigmask=(),
            setsigdef=ENDING,
        )
    except OSError as error:
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"cannot start {arguments[0]} in {folder}: {error}\n")
        pid = os.fork()
        if not pid:
            os._exit(127)
        return pid
