"""The engine's part of a debugging session: listen on this machine, prepare the step, and follow its debuggers."""

import asyncio
import contextlib
import json
import os
import re
import shutil
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.plan.walk import without_labels
from allranks_lab.debugging import in_rank
from allranks_lab.debugging.in_rank import LOCAL

HELD = {
    "HOROVOD_STALL_CHECK_DISABLE": "1",
    "HOROVOD_GLOO_TIMEOUT_SECONDS": "2592000",
    "TORCH_NCCL_ENABLE_MONITORING": "0",
    "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC": "2592000",
    "ALLRANKS_TIMEOUT_SECONDS": "2592000",
    "ALLRANKS_JOIN_SECONDS": "2592000",
    "PYDEVD_DISABLE_FILE_VALIDATION": "1",
}
"""Variables of a debugged step, so that no library ends a rank that waits for a stopped one."""


@dataclass
class DebugSession:
    """A debugging session of one step.

    step:        the path of the step. Without the labels of iterations, the first iteration is debugged
    ranks:       the ranks to debug; None: all
    terminal:    whether the debugger is pdb, on the terminal of this process; otherwise debugpy
    debugpy:     the folder of the package debugpy
    port:        the port of the first rank; each further rank has the next one. 0: free ports
    """

    step: str
    ranks: tuple[int, ...] | None
    terminal: bool = False
    debugpy: str = ""
    port: int = 0
    listeners: dict[int, socket.socket] = field(default_factory=dict)
    _debugged: str = ""
    _forwarded: set[int] = field(default_factory=set)

    def port_of(self, rank: int) -> int:
        """Return the port of this machine on which the debugger of a rank listens. Raise InputError if it is taken."""
        if rank not in self.listeners:
            port = self.port + len(self.listeners) if self.port else 0
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind((LOCAL, port))
                listener.listen()
            except OSError as error:
                listener.close()
                found = f"port {port} cannot be used: {error.strerror}"
                raise InputError(Problem(f"--port {self.port}", found, "a free port", "omit --port")) from None
            self.listeners[rank] = listener
        return int(self.listeners[rank].getsockname()[1])

    def concerns(self, path: str) -> bool:
        """Return whether the step at a path of the run is the one that is debugged."""
        return path == self._debugged or (not self._debugged and self.step in (path, without_labels(path)))

    def variables(self, path: str, folder: Path, step_variables: Mapping[str, str]) -> dict[str, str]:
        """Prepare an attempt of the step. Return the additional variables of its processes.

        folder:         the folder of the step
        step_variables: the step's environment variables
        """
        self._debugged = path
        place = folder / "debug"
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        shutil.copy(in_rank.__file__, place / "sitecustomize.py")
        settings = {name: getattr(self, name) for name in ("ranks", "terminal", "debugpy")}
        (place / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
        path_of_python = os.pathsep.join(filter(None, (str(place), step_variables.get("PYTHONPATH", ""))))
        return {**HELD, in_rank.VARIABLE: str(place), "PYTHONPATH": path_of_python}

    async def follow(self, folder: Path, note: Callable[[str], None], end: Callable[[], Awaitable[None]]) -> None:
        """Forward the debuggers of the step's ranks to this machine until this is cancelled.

        note: shows a message to the user
        end:  ends the run when the user quits the debugger
        """
        files, known = folder / "debug", dict[Path, str]()
        try:
            while True:
                for file in sorted(files.glob(in_rank.RANK.format("*"))):
                    text = file.read_text(encoding="utf-8")
                    if known.get(file) != text:
                        known[file] = text
                        rank = int(re.sub(r"\D", "", file.stem))
                        if not self._handle(rank, json.loads(text), files, note):
                            await end()
                await asyncio.sleep(0.1)
        finally:
            if not known:
                ranks = "no rank" if self.ranks is None else f"rank {', '.join(map(str, self.ranks))} never"
                note(f"no debugger was opened: {ranks} started a Python script")
            self._close()

    def _handle(self, rank: int, state: Mapping[str, Any], files: Path, note: Callable[[str], None]) -> bool:
        """Handle the report of a debugger. Return False if the run must end."""
        if state["state"] == "quit":
            note(f"the debugger of rank {rank} has ended the run")
        elif state["state"] == "failed":
            note(f"rank {rank}: {state['reason']}")
        else:
            socket = files / in_rank.SOCKET.format(rank)
            where = "" if self.terminal else f" for a debugger on {LOCAL}:{self.port_of(rank)}"
            note(f"rank {rank} waits{where}; its code is in {state['folder']}")
            if self.terminal:
                threading.Thread(target=_connect_terminal, args=(socket,), daemon=True).start()
            elif rank not in self._forwarded:
                self._forwarded.add(rank)
                forward(self.listeners[rank], socket)
            return True
        return False

    def _close(self) -> None:
        for listener in self.listeners.values():
            listener.shutdown(socket.SHUT_RDWR)  # ends the wait of a relay for connections
            listener.close()
        self._forwarded.clear()
        self.listeners.clear()


def forward(listener: socket.socket, debugger: Path) -> None:
    """Forward the connections of this user to a debugger, in a thread, until the listener is shut down.

    Editors attach to a port, to which every user of the machine can connect, and a debugger runs any code.

    debugger: the path of its socket
    """

    def connect_own(client: socket.socket) -> socket.socket:
        if user_of_peer(client) != os.geteuid():
            raise PermissionError
        return connect(debugger)

    threading.Thread(target=in_rank.forward, args=(listener, connect_own), daemon=True).start()


def connect(path: Path) -> socket.socket:
    """Return a connection to the socket at a path of any length. Raise OSError if no process listens there."""
    connection = socket.socket(socket.AF_UNIX)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{path.name}")
    except OSError:
        connection.close()
        raise
    finally:
        os.close(folder)
    return connection


def user_of_peer(connection: socket.socket) -> int | None:
    """Return the user id of the client of a connection on this machine; None if the connection is closed."""
    ends = [_as_in_proc(*end) for end in (connection.getpeername(), connection.getsockname())]
    with open("/proc/self/net/tcp", encoding="ascii") as table:
        return next((int(row[7]) for row in map(str.split, table) if row[1:3] == ends), None)


def _as_in_proc(address: str, port: int) -> str:
    return f"{int.from_bytes(socket.inet_aton(address), sys.byteorder):08X}:{port:04X}"


def _connect_terminal(path: Path) -> None:
    """Connect this process's standard input and output to a debugger, by the path of its socket."""
    with connect(path) as connection:

        def send() -> None:
            with contextlib.suppress(OSError):
                for line in sys.stdin:
                    connection.sendall(line.encode())
                connection.shutdown(socket.SHUT_WR)

        threading.Thread(target=send, daemon=True).start()
        with contextlib.suppress(OSError):
            while data := connection.recv(1 << 16):
                sys.stdout.write(data.decode(errors="replace"))
                sys.stdout.flush()
