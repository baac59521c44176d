"""How a rank is started. This is the only place that does: whatever starts ranks faster replaces this function."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE)
"""Signals that a program is to find as the system has them, whatever its starter does about them."""


def start(arguments: list[str], environment: Mapping[str, str], folder: str, log: str) -> int:
    """Start a process and returns its id at once. The caller's own working directory is `folder` afterwards.

    arguments: the program, as an absolute path, and what it is given
    folder:    its working directory
    log:       the file to which its stdout and stderr are appended; its folder must exist

    The process leads a session of its own, so that a signal to its group reaches what it started. A folder or a program
    that cannot be used ends it with exit code 127 and the reason in its log.
    """
    output = (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    streams = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0), output, (os.POSIX_SPAWN_DUP2, 1, 2)]
    try:
        os.chdir(folder)
        # A fork would copy this interpreter's memory map for nothing: 2 ms more.
        return os.posix_spawn(
            arguments[0], arguments, environment, file_actions=streams, setsid=True, setsigmask=(), setsigdef=ENDING
        )
    except OSError as error:
        with open(log, "a", encoding="utf-8") as file:
            file.write(f"cannot start {arguments[0]} in {folder}: {error}\n")
        pid = os.fork()
        if not pid:
            os._exit(127)
        return pid
