"""The tracker process: started early, since importing MLflow takes a second, and connected when a run needs it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
from dataclasses import dataclass

from allranks.runs.workspace import Workspace

BIG_LINE = 1 << 28
"""Maximum bytes of one answer, which contains all curves of an MLflow run."""


def command(workspace: Workspace) -> tuple[str, ...]:
    """Return the command that starts the tracker process. It creates nothing before its first request."""
    module = "allranks.local.tracking.tracker"
    uri, files = workspace.tracking_uri, str(workspace.tracked_files)
    return (sys.executable, "-m", module, str(os.getpid()), uri, files)


def start(arguments: tuple[str, ...]) -> subprocess.Popen[bytes]:
    """Start a tracker process with this command. Raise OSError if that fails."""
    return subprocess.Popen(
        arguments,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # Ctrl-C at the terminal is for the engine
    )


@dataclass
class Connection:
    """A tracker process with its streams in the event loop."""

    process: subprocess.Popen[bytes]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    def kill(self) -> None:
        """Kill the process."""
        kill(self.process)

    async def close(self, seconds: float) -> None:
        """End the process, and wait until it has exited. Kill it after this time."""
        try:
            self.writer.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                await asyncio.to_thread(self.process.wait, seconds)
        finally:
            self.kill()
            self.process.wait()


async def connect(process: subprocess.Popen[bytes]) -> Connection:
    """Connect the process's streams to the event loop."""
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=BIG_LINE, loop=loop)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader, loop=loop), process.stdout)
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader(loop=loop), loop=loop), process.stdin
    )
    return Connection(process, reader, asyncio.StreamWriter(transport, protocol, None, loop))


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the process, unless it has ended."""
    with contextlib.suppress(ProcessLookupError):
        process.kill()


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
            kill(process)
            process.communicate()
