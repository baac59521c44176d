"""How a rank is started. This is the only place that does: whatever starts ranks faster replaces this function."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping

from allranks.local.supervision.kernel import die_with_parent


def start(arguments: list[str], environment: Mapping[str, str], folder: str, log: str) -> int:
    """Starts a process and returns its id at once.

    arguments: the program, as an absolute path, and what it is given
    folder:    its working directory
    log:       the file to which its stdout and stderr are appended; its folder must exist

    The process leads a session of its own, so that a signal to its group reaches what it started, and dies with the
    caller. A folder or a program that cannot be used ends it with exit code 127 and the reason in its log.
    """
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        die_with_parent()
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.chdir(folder)
        os.execve(arguments[0], arguments, dict(environment))
    except OSError as error:
        os.write(2, f"cannot start {arguments[0]} in {folder}: {error}\n".encode())
    finally:
        os._exit(127)
