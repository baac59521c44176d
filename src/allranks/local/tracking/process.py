"""The tracker process, which is started before it is known whether a run needs it: importing MLflow takes a second."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

from allranks.history.workspace import Workspace


def command(workspace: Workspace) -> tuple[str, ...]:
    """Return the command that starts the tracker process. It creates nothing before its first request."""
    return (sys.executable, "-m", "allranks.local.tracking.tracker", str(os.getpid()), workspace.tracking_uri)


def start(arguments: tuple[str, ...]) -> subprocess.Popen[bytes]:
    """Start a tracker process with this command. Raise OSError if that fails."""
    return subprocess.Popen(
        arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C at the terminal is for the engine
    )


def end(process: subprocess.Popen[bytes], seconds: float) -> None:
    """End a tracker process, and wait until it has exited. Kill it after this time."""
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(OSError):  # it has ended already
        process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(seconds)
    process.kill()
    process.wait()
    process.stdout.close()


class EarlyTracker:
    """A tracker process that is started before it is known whether a run needs it.

    Leaving the block ends an unused process, which has not created anything in MLflow.
    """

    def __init__(self, workspace: Workspace, *, enabled: bool) -> None:
        """enabled: whether to start a process at all"""
        self._process: subprocess.Popen[bytes] | None = None
        if enabled:
            with contextlib.suppress(OSError):  # the run reports that, if it needs one
                self._process = start(command(workspace))

    def take(self) -> subprocess.Popen[bytes] | None:
        """Return the process, which the caller must end, or None if none is available."""
        process, self._process = self._process, None
        return process

    def __enter__(self) -> EarlyTracker:
        return self

    def __exit__(self, *raised: object) -> None:
        process = self.take()
        if process is not None:
            end(process, 0)
