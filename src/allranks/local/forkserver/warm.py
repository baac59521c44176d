"""The process of `allranks warm`: fork servers that outlive runs. Each run borrows a fork of them.

`allranks run` starts the same process for itself while it still reads its file (`early.py`).
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.local import installed
from allranks.local.boot import SOURCE
from allranks.local.forkserver.client import key_of, received, spawn
from allranks.local.instances.kernel import die_with_parent
from allranks.plan import digest

MOST = 4
"""Maximum number of processes. Each holds its imported modules in memory, 200 to 600 MB."""

_MESSAGE = 1 << 16
_DESCRIPTORS = 8
_REQUEST_SECONDS = 2.0
_LONGEST_WAIT = 3600.0


def serve(
    path: Path, idle_seconds: float, notice: Callable[[str], None], specs: Sequence[Mapping[str, Any]] = ()
) -> None:
    """Lend fork servers until no run has needed one for `idle_seconds`, or an exception such as KeyboardInterrupt.

    path:   of the socket, in an existing folder
    notice: called with a line whenever something happens that a user may want to know
    specs:  of fork servers to prepare

    Raise InputError if another process uses the socket.
    """
    with _listening(path) as listener:
        minutes = f"{idle_seconds / 60:g} minutes"
        notice(f"serves runs in {path.parent} until Ctrl-C, or until it is idle for {minutes}")
        processes = _Processes(notice)
        last = time.monotonic()
        try:
            for spec in specs:
                processes.prepare(spec)
            while (left := last + idle_seconds - time.monotonic()) > 0:
                alive = {process.connection.fileno(): process for process in processes.alive()}
                ready, _, _ = select.select([listener.fileno(), *alive], [], [], min(left, _LONGEST_WAIT))
                for descriptor in ready:
                    if descriptor in alive:
                        alive[descriptor].receive()
                    else:
                        processes.answer(listener)
                        last = time.monotonic()
        finally:
            for process in processes.alive():
                process.close()


class _Processes:
    """The processes of the fork servers, by their modules."""

    def __init__(self, notice: Callable[[str], None]) -> None:
        self._notice = notice
        self._by_key: dict[str, ImportedProcess] = {}

    def alive(self) -> list[ImportedProcess]:
        return [process for process in self._by_key.values() if process.is_alive]

    def prepare(self, spec: Mapping[str, Any]) -> None:
        with contextlib.suppress(OSError, KeyError):
            self._of(spec)

    def answer(self, listener: socket.socket) -> None:
        """Accept one request of a supervisor, and answer it: 1 if it gets a fork server, else 0."""
        connection, _ = listener.accept()
        descriptors: list[int] = []
        with connection, contextlib.suppress(OSError, ValueError, KeyError):
            connection.settimeout(_REQUEST_SECONDS)
            if _user_of(connection) not in (os.geteuid(), 0):
                return
            data, descriptors, _, _ = socket.recv_fds(connection, _MESSAGE, _DESCRIPTORS)
            for descriptor in descriptors:
                os.set_inheritable(descriptor, False)
            process = self._of(json.loads(data))
            if process is not None:
                process.lend(descriptors)
            connection.send(b"0" if process is None else b"1")
        for descriptor in descriptors:
            os.close(descriptor)

    def _of(self, spec: Mapping[str, Any]) -> ImportedProcess | None:
        """Return the process for a spec, which may still be importing; None if it is unfit."""
        key, stamp = key_of(spec), stamp_of(spec["interpreter"])
        process = self._by_key.pop(key, None)
        if process is not None and process.stamp != stamp:
            self._notice(f"packages of {spec['interpreter']} have changed")
            process.close()
            process = None
        if process is None:
            self._make_room()
            self._notice(f"imports {', '.join(spec['modules'])} for {spec['interpreter']}")
            process = ImportedProcess(spec, stamp)
        self._by_key[key] = process  # in the order of their last use
        return process if process.is_alive else None

    def _make_room(self) -> None:
        alive = self.alive()
        for process in alive[: max(len(alive) - MOST + 1, 0)]:
            process.close()
            self._by_key = {key: other for key, other in self._by_key.items() if other is not process}


@contextlib.contextmanager
def _listening(place: Path) -> Iterator[socket.socket]:
    """Listen at a socket for the duration of the block. Its file appears when it accepts connections."""
    folder = os.open(place.parent, os.O_PATH)
    # The path of a socket may have 107 characters.
    path = f"/proc/self/fd/{folder}/{place.name}"
    own = f"{path}.{os.getpid()}"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            if _is_served(path):
                found = "`allranks warm` already runs for this workspace"
                raise InputError(Problem(str(place.parent), found, "one process", "use that one, or end it first"))
            mask = os.umask(0o177)
            try:
                listener.bind(own)
            finally:
                os.umask(mask)
            listener.listen()
            os.rename(own, path)
            identity = os.stat(path).st_ino
            try:
                yield listener
            finally:
                with contextlib.suppress(OSError):
                    if os.stat(path).st_ino == identity:
                        os.unlink(path)
    finally:
        os.close(folder)


def _is_served(path: str) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.settimeout(_REQUEST_SECONDS)
        try:
            client.connect(path)
        except TimeoutError:
            return True
        except OSError:
            return False
        return True


def _user_of(connection: socket.socket) -> int:
    """Return the user of the process at the other end."""
    size = struct.calcsize("3i")
    _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    return int(user)


_OWN_CODE = ("forkserver", "instances")
"""The folders of `allranks.local` whose code such a process contains."""


class ImportedProcess:
    """A process with the modules of a fork server.

    stamp:    of the installed packages when it was started
    is_alive: whether it accepts requests
    """

    def __init__(self, spec: Mapping[str, Any], stamp: str) -> None:
        """Start the process for a spec, as of `programs.ForkServerSpec`. Raise OSError if that fails."""
        self.stamp = stamp
        self.is_alive = True
        self.connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._pid = spawn(spec, theirs.fileno())

    def lend(self, descriptors: Sequence[int]) -> None:
        """Request a fork of it. It reads requests when it has imported its modules.

        descriptors: its connection, and the namespaces of its supervisor
        """
        with contextlib.suppress(OSError):  # it has ended: the supervisor notices the end of the connection
            socket.send_fds(self.connection, [json.dumps({"lend": True}).encode()], descriptors)

    def receive(self) -> None:
        """Read a message of the process. Close it if it can lend nothing."""
        data = received(self.connection)
        if not data or json.loads(data)["event"] == "unfit":
            self.close()

    def close(self) -> None:
        """End the process. Its lent forks continue."""
        if self.is_alive:
            self.is_alive = False
            self.connection.close()
            with contextlib.suppress(ProcessLookupError):  # it may still be importing
                os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)


def stamp_of(interpreter: str) -> str:
    """Return a digest of an interpreter's packages and of the fork servers' own code."""
    own = []
    for name in _OWN_CODE:
        for folder, _, files in os.walk(os.path.join(SOURCE, "allranks", "local", name)):
            paths = (os.path.join(folder, file) for file in sorted(files) if file.endswith(".py"))
            own += [f"{path} {os.stat(path).st_mtime_ns}" for path in paths]
    return digest.of_text(installed.of(Path(interpreter)), *own)


def main(path: str, engine: str) -> None:
    """Import the modules of the specs on stdin, and lend fork servers at a socket until this process is terminated.

    engine: the process id of the engine
    """
    signal.signal(signal.SIGTERM, _end)
    die_with_parent()
    if os.getppid() == int(engine):
        with contextlib.suppress(KeyboardInterrupt):
            serve(Path(path), float("inf"), lambda _: None, json.load(sys.stdin))


def _end(*_: object) -> None:
    raise KeyboardInterrupt
