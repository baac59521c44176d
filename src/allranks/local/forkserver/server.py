"""Fork the Python programs that the shells of an instance start, in its agent, which was forked from a fork server."""

import os
import resource
import signal
import socket
import struct
import time
import warnings
from collections.abc import Callable, Collection, MutableMapping, Sequence
from contextlib import suppress

from allranks.local.forkserver import rank
from allranks.local.forkserver.preloaded import Preloaded
from allranks.local.forkserver.request import Request, obstacle, parse
from allranks.local.forkserver.shim import EXECUTABLE, EXECUTE, FORKED, SOCKET
from allranks.local.instances.process_log import ProcessLog
from allranks.local.instances.processes import RANK, RANK_VARIABLE, parse_stat, signal_group
from allranks.local.instances.sampling import cpu_seconds, peak_memory

REQUEST = 1 << 18
"""Maximum bytes of a request."""

DESCRIPTORS = 253
"""Maximum number of descriptors that the kernel sends at once."""


_CREDENTIALS = struct.Struct("3i")
"""struct ucred."""


class Server:
    """The forked programs of an instance. Each belongs to a process of `shim.py`, its client.

    folder: the folder of the instance, which contains the socket
    names:  the names of the programs that the agent has started, by process id. Those of forked processes are added.
    write:  writes an event
    """

    def __init__(
        self,
        preloaded: Preloaded,
        folder: str,
        names: MutableMapping[int, str],
        write: Callable[..., None],
        log: ProcessLog,
    ) -> None:
        """Raise OSError if the socket cannot be made."""
        self._python = f"{folder}/{EXECUTABLE}"
        self._preloaded = preloaded
        self._names = names
        self._write = write
        self._log = log
        self._clients: dict[socket.socket, int] = {}
        """The forked process of each client; 0 until the client has sent its request."""
        self._running: dict[int, int] = {}
        """The process id of the client of each forked process."""
        self._moved: set[str] = set()
        os.chdir(folder)  # the path of a socket may have 107 characters; a run's folder has more
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listener.bind(SOCKET)
        self._listener.listen(socket.SOMAXCONN)

    @property
    def sockets(self) -> list[socket.socket]:
        """Return the sockets to wait for. `handle` gets those that are ready."""
        return [self._listener, *self._clients]

    def handle(self, ready: Collection[object]) -> None:
        """Read the sockets that are ready: fork programs, and pass signals on."""
        for client, pid in list(self._clients.items()):
            if client in ready:
                if not pid:
                    self._answer(client)
                elif message := _receive_message(client):
                    if message[1]:
                        signal_group(pid, message[0])
                    else:
                        with suppress(ProcessLookupError):  # it has just ended
                            os.kill(pid, message[0])
                else:  # it was killed
                    signal_group(pid, signal.SIGKILL)
                    self._forget(client)
        if self._listener in ready:
            self._clients[self._listener.accept()[0]] = 0

    def signal(self, number: int, groups: Collection[int]) -> None:
        """Send a signal to the forked processes whose clients are in these process groups. The clients ignore it."""
        signaled = set(groups)
        for pid, client in self._running.items():
            with suppress(ProcessLookupError):  # it was killed
                if os.getpgid(client) in signaled:
                    signal_group(pid, number)
                    signaled.add(pid)

    def report_end(self, pid: int, status: int, usage: resource.struct_rusage) -> None:
        """Report the end of a process if it was forked here."""
        if pid not in self._running:
            return
        del self._running[pid]
        for client in [client for client, forked in self._clients.items() if forked == pid]:
            with suppress(OSError):  # it has just been killed
                client.send(str(os.waitstatus_to_exitcode(status)).encode())
            self._forget(client)
        used = {"cpu": cpu_seconds(usage), "memory": peak_memory(usage)}
        self._write(event="used", program=self._names[pid], **used, time=time.time())

    def _forget(self, client: socket.socket) -> None:
        del self._clients[client]
        client.close()

    def _answer(self, client: socket.socket) -> None:
        """Fork the program that a client requests, or tell the client to execute it."""
        asking, _, _ = _CREDENTIALS.unpack(client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        reason, forked, descriptors = "it was killed", 0, list[int]()
        with suppress(OSError, ValueError, EOFError):
            data, descriptors, _, _ = socket.recv_fds(client, REQUEST, DESCRIPTORS)
            request = parse(asking, data)
            reason = obstacle(request, self._preloaded) if request else "only a new interpreter can run it"
            if request and not reason:
                forked = self._fork(request, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        with suppress(OSError):
            client.send(FORKED if forked else EXECUTE)
        if forked:
            self._clients[client] = forked
        else:
            self._log.write("program not forked", program=asking, reason=reason)
            self._forget(client)

    def _fork(self, request: Request, descriptors: Sequence[int]) -> int:
        name, number = self._name_of(request.pid), request.environment.get(RANK_VARIABLE)
        if number is not None and not name.startswith(RANK):  # mpirun has started it
            name = RANK + number
        leads = os.getsid(request.pid) == request.pid
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python 3.12 warns where a library has started threads
            pid = os.fork()
        if not pid:
            rank.run(request, descriptors, self._preloaded, self._python)
        self._names[pid] = name
        self._running[pid] = request.pid
        self._log.write("program forked", program=name, started=pid, client=request.pid)
        if leads and name not in self._moved:
            self._moved.add(name)
            self._write(event="moved", program=name, pid=pid, time=time.time())
        return pid

    def _name_of(self, pid: int) -> str:
        """Return the name of the program that a process belongs to; "" if that has ended."""
        while pid:
            with open(f"/proc/{pid}/stat", "rb") as file:
                stat = parse_stat(file.read())
            if name := self._names.get(pid) or self._names.get(stat.session):
                return name
            pid = stat.parent
        return ""


def _receive_message(client: socket.socket) -> bytes:
    """Return the next message of a client; b"" if it has ended."""
    try:
        return client.recv(16)
    except ConnectionResetError:  # without reading the last answer
        return b""
