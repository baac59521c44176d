"""Fork the ranks of programs such as mpirun, on behalf of a client process that the program starts as a rank."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NoReturn

from allranks.local.instances.agent import ended_children, wake_on_exit
from allranks.local.instances.sampling import cpu_seconds, peak_memory

REQUEST = 1 << 18
"""Maximum bytes of a program. A rank whose program is larger starts as a new process."""

Run = Callable[[Mapping[str, Any]], NoReturn]


def start(program: Mapping[str, Any], run: Run) -> int:
    """Start a server and return its process id. Its socket exists when this function returns.

    A client sends a program as JSON. It receives a message with the process id of the rank, and one with its exit code,
    CPU time and peak memory. If it ends before, the rank is killed.

    program: its `serves` is the name of the socket in its working directory. This changes the caller's own.
    run:     is the rank, in a process that has just been forked
    """
    os.chdir(program["folder"])  # the path of a socket may have 108 characters; a run's folder has more
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(program["serves"])
        listener.listen(socket.SOMAXCONN)
        pid = os.fork()
        if not pid:
            try:
                os.setsid()
                _serve(listener, run)
                os._exit(0)
            finally:
                os._exit(1)
    return pid


def _serve(listener: socket.socket, run: Run) -> None:
    """Serve until SIGTERM. Ranks that run then still get their time to end."""
    ranks: dict[int, socket.socket] = {}
    signals: list[int] = []
    wake = wake_on_exit()
    signal.signal(signal.SIGTERM, lambda number, _: signals.append(number))
    while ranks or not signals:
        watched: list[Any] = [listener, wake, *ranks.values()]
        ready, _, _ = select.select(watched, [], [])
        if wake in ready:
            os.read(wake, 4096)
            for pid, status, usage in ended_children():
                with ranks.pop(pid) as client:
                    code = os.waitstatus_to_exitcode(status)
                    _send(client, code=code, cpu=cpu_seconds(usage), memory=peak_memory(usage))
        for pid, client in ranks.items():
            if client in ready:  # it sends no more, so it has ended
                _kill_group(pid)
        if listener in ready:
            client, _ = listener.accept()
            if request := client.recv(REQUEST):
                pid = os.fork()
                if not pid:
                    run(json.loads(request))
                ranks[pid] = client
                _send(client, pid=pid)


def _send(client: socket.socket, **message: Any) -> None:
    with suppress(OSError):  # the client has ended, which kills its rank
        client.send(json.dumps(message).encode())


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        os.kill(pid, signal.SIGKILL)  # it has not made its session yet
