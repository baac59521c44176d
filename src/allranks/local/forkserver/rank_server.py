"""Fork the ranks of programs such as mpirun, on behalf of a client process that the program starts as a rank."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from allranks.local.instances.agent import wake_on_exit
from allranks.local.instances.sampling import cpu_seconds, peak_memory

RECEIVED = 1 << 16

Run = Callable[[Mapping[str, Any]], NoReturn]


def start(program: Mapping[str, Any], run: Run) -> int:
    """Start a server and return its process id. Its socket exists when this function returns.

    A client sends a program as one line of JSON. It receives a line with the process id of the rank, and one with its
    exit code, CPU time and peak memory. If it ends before, the rank is killed.

    program: its `serves` is the name of the socket in its working directory. This changes the caller's own.
    run:     is the rank, in a process that has just been forked
    """
    os.chdir(program["folder"])  # the path of a socket may have 108 characters; a run's folder has more
    listener = socket.socket(socket.AF_UNIX)
    try:
        listener.bind(program["serves"])
        listener.listen(socket.SOMAXCONN)
        pid = os.fork()
        if not pid:
            _serve(listener, run)
    finally:
        listener.close()
    return pid


def _serve(listener: socket.socket, run: Run) -> NoReturn:
    status = 1
    try:
        os.setsid()
        _Server(listener, run).serve()
        status = 0
    finally:
        os._exit(status)


class _Server:
    def __init__(self, listener: socket.socket, run: Run) -> None:
        self._listener = listener
        self._run = run
        self._requests: dict[socket.socket, bytes] = {}
        self._ranks: dict[int, socket.socket] = {}
        self._ending = False

    def serve(self) -> None:
        """Serve until SIGTERM. Ranks that run then still get their time to end."""
        wake = wake_on_exit()
        signal.signal(signal.SIGTERM, self._end)
        while not self._ending or self._ranks:
            # A rank's client sends no more, but its end is noticed.
            clients: list[Any] = [*self._requests, *self._ranks.values()]
            ready, _, _ = select.select([self._listener, wake, *clients], [], [])
            if wake in ready:
                os.read(wake, 4096)
                self._reap()
            if self._listener in ready:
                self._requests[self._listener.accept()[0]] = b""
            for client in clients:
                if client in ready and client.fileno() >= 0:
                    self._receive(client)

    def _end(self, *_: object) -> None:
        self._ending = True

    def _receive(self, client: socket.socket) -> None:
        data = _received(client)
        if not data:
            for pid in [pid for pid, other in self._ranks.items() if other is client]:
                _kill_group(pid)
            self._forget(client)
            return
        if client not in self._requests:
            return
        self._requests[client] += data
        line, newline, _ = self._requests[client].partition(b"\n")
        if newline:
            del self._requests[client]
            self._start(json.loads(line), client)

    def _start(self, program: dict[str, Any], client: socket.socket) -> None:
        pid = os.fork()
        if not pid:
            self._run(program)
        self._ranks[pid] = client
        _send(client, pid=pid)

    def _reap(self) -> None:
        while self._ranks:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if not pid:
                return
            client = self._ranks.pop(pid, None)
            if client is not None:
                code = os.waitstatus_to_exitcode(status)
                _send(client, code=code, cpu=cpu_seconds(usage), memory=peak_memory(usage))
                client.close()

    def _forget(self, client: socket.socket) -> None:
        self._requests.pop(client, None)
        # Its rank stays known until it has ended. A closed socket is not waited for.
        if client not in self._ranks.values():
            client.close()


def _received(client: socket.socket) -> bytes:
    try:
        return client.recv(RECEIVED)
    except ConnectionResetError:
        return b""


def _send(client: socket.socket, **message: Any) -> None:
    try:
        client.sendall(json.dumps(message).encode() + b"\n")
    except OSError:
        return  # the client has ended, which kills its rank


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(pid, signal.SIGKILL)  # it has not made its session yet
