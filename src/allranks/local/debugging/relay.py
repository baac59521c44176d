"""Forward a port of this machine to the socket of a debugger, for this user only.

Editors attach to a port, to which every user of the machine can connect, and a debugger runs any code.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from pathlib import Path

LOCAL = "127.0.0.1"


class Relay:
    """Forwards the connections to a listening socket until that is closed.

    target: the path of the debugger's socket; it may be changed
    """

    def __init__(self, listener: socket.socket, target: Path) -> None:
        self.target = target
        self._listener = listener
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            try:
                if user_of_peer(client) != os.geteuid():
                    raise PermissionError
                server = connect(self.target)
            except OSError:
                client.close()
                continue
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=_copy, args=(source, target), daemon=True).start()


def connect(path: Path) -> socket.socket:
    """Return a connection to the socket at a path of any length. Raise OSError if nobody listens there."""
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
    """Return the number of the user who has connected to a port of this machine; None if the connection is gone."""
    ends = [_as_in_proc(*end) for end in (connection.getpeername(), connection.getsockname())]
    with open("/proc/self/net/tcp", encoding="ascii") as table:
        return next((int(row[7]) for row in map(str.split, table) if row[1:3] == ends), None)


def _as_in_proc(address: str, port: int) -> str:
    return f"{int.from_bytes(socket.inet_aton(address), sys.byteorder):08X}:{port:04X}"


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
    for end, how in ((target, socket.SHUT_WR), (source, socket.SHUT_RD)):
        with contextlib.suppress(OSError):
            end.shutdown(how)
