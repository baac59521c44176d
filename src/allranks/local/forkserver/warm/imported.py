"""A process that has imported modules, and that forks a starter whenever a run needs one."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from allranks.local import installed
from allranks.local.boot import SOURCE
from allranks.local.instances.agent.starters import spawn
from allranks.plan import digest

_MESSAGES = 1 << 16
_OWN_CODE = ("forkserver", "instances")
"""The folders of `allranks.local` whose code such a process contains."""


class ImportedProcess:
    """A process with the modules of a starter.

    spec:   as of `programs.StarterSpec`
    stamp:  of the installed packages when it was started
    used:   when it was last used: seconds of a monotonic clock
    unfit:  why no starter can be forked from it; "" if it can
    is_alive: whether it can be asked
    """

    def __init__(self, spec: Mapping[str, Any], stamp: str, now: float) -> None:
        """Start the process. Raise OSError if its interpreter cannot be started."""
        self.spec, self.stamp, self.used = spec, stamp, now
        self.unfit = ""
        self.is_alive = True
        self.is_ready = False
        self.connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._pid = spawn(spec, theirs.fileno())
        self._waiting: list[Sequence[int]] = []

    def lend(self, descriptors: Sequence[int]) -> None:
        """Let it fork a starter as soon as it has imported its modules. Closes the descriptors.

        descriptors: the starter's connection, and the namespaces of its supervisor
        """
        if not self.is_ready:
            self._waiting.append(descriptors)
            return
        with contextlib.suppress(OSError):  # it has ended: the supervisor notices the end of the connection
            socket.send_fds(self.connection, [json.dumps({"lend": True}).encode()], descriptors)
        _close(descriptors)

    def receive(self) -> None:
        """Read a message of the process."""
        try:
            data = self.connection.recv(_MESSAGES)
        except ConnectionResetError:
            data = b""
        message = json.loads(data) if data else {"event": "end"}
        if message["event"] == "ready":
            self.is_ready = True
            waiting, self._waiting = self._waiting, []
            for descriptors in waiting:
                self.lend(descriptors)
        elif message["event"] in ("unfit", "end"):
            self.unfit = message.get("reason", "it ended")
            self.close()

    def close(self) -> None:
        """End the process. Starters that it has lent go on."""
        if self.is_alive:
            self.is_alive = False
            self.connection.close()
            with contextlib.suppress(ProcessLookupError):  # it may still be importing
                os.kill(self._pid, signal.SIGKILL)
            for descriptors in self._waiting:
                _close(descriptors)
            os.waitpid(self._pid, 0)


def stamp_of(interpreter: str) -> str:
    """Return a digest of the packages that an interpreter has, and of the code that runs in such a process."""
    own = []
    for name in _OWN_CODE:
        for folder, _, files in os.walk(os.path.join(SOURCE, "allranks", "local", name)):
            paths = (os.path.join(folder, file) for file in sorted(files) if file.endswith(".py"))
            own += [f"{path} {os.stat(path).st_mtime_ns}" for path in paths]
    return digest.of_text(installed.of(Path(interpreter)), *own)


def _close(descriptors: Sequence[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
