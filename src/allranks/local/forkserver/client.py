"""The supervisor's handles of a run's fork servers."""

import json
import os
import socket
from collections.abc import Callable, Mapping
from typing import Any

from allranks.local.boot import SOURCE
from allranks.local.instances.agent import AgentProcess
from allranks.local.instances.process_log import ProcessLog
from allranks.local.instances.processes import ENDING

MOST = 3
"""Maximum number of fork servers at the same time. Each holds its imported modules in memory."""

MESSAGES = 1 << 16
"""Bytes to receive at once."""

# The package is found by its path only, so that other imports do not search the folder that contains it.
_BOOT = """
import sys, types
source, *arguments = sys.argv[1:]
package = sys.modules["allranks"] = types.ModuleType("allranks")
package.__path__ = [source + "/allranks"]
del source, package, types
from allranks.local.forkserver.main import main
main(*arguments)
"""


class ForkServer:
    """A fork server's process. It imports while the supervisor continues.

    usable: whether it forks agents, now or after it has imported its modules
    """

    def __init__(self, spec: Mapping[str, Any], isolation: str, log: ProcessLog) -> None:
        """Start the process.

        spec:      the fields of `supervisor.ForkServerSpec`
        isolation: ``MODULE:CLASS``

        Raise OSError if its interpreter cannot be started.
        """
        self._isolation = isolation
        self._log = log
        self.connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.pid = _spawn(spec, theirs.fileno())
        log.write("fork server started", fork_server=self.pid, modules=list(spec["modules"]))
        self.usable = True
        self._forking: dict[int, AgentProcess] = {}
        self.forked: set[int] = set()

    def fork(self, agent: AgentProcess, events: int, network: int | None) -> None:
        """Request a fork of the agent. The process reads requests when it has imported its modules.

        events, network: descriptors that the agent gets

        Raise OSError if the process has ended, or too many requests wait: the kernel limits descriptors in transit.
        """
        shared = {"control": agent.listen, "events": events, "network": network, "log": self._log.descriptor}
        sent = {name: descriptor for name, descriptor in shared.items() if descriptor not in (None, -1)}
        request = {"isolation": self._isolation, "index": agent.index, "descriptors": list(sent)}
        socket.send_fds(self.connection, [json.dumps(request).encode()], list(sent.values()))
        self._forking[agent.index] = agent

    def receive(
        self, forked: Callable[[AgentProcess, int], None], ended: Callable[[int, int], None]
    ) -> list[AgentProcess]:
        """Handle the messages of the process. Return the agents that it cannot fork.

        forked: called with an agent and its process id
        ended:  called with the process id and the status of an agent that has ended
        """
        data = _receive_message(self.connection)
        if not data:
            lost, self._forking = list(self._forking.values()), {}
            self._log.write("fork server ended", fork_server=self.pid)
            self.close()
            return lost
        message = json.loads(data)
        if message["event"] == "ready":
            self._log.write("fork server imported its modules", fork_server=self.pid)
        elif message["event"] == "unfit":
            self._log.write("fork server unfit", "warning", fork_server=self.pid, reason=message["reason"])
        elif message["event"] == "forked":
            self.forked.add(message["pid"])
            forked(self._forking.pop(message["index"]), message["pid"])
        elif message["event"] == "failed":
            return [self._forking.pop(message["index"])]
        elif message["event"] == "ended":
            self.forked.discard(message["pid"])
            ended(message["pid"], message["status"])
        return []

    @property
    def busy(self) -> bool:
        """Whether agents wait to be forked."""
        return bool(self._forking)

    def close(self) -> None:
        """End the process by closing its connection. Its agents continue."""
        self.usable = False
        self.connection.close()


def _receive_message(connection: socket.socket) -> bytes:
    """Return the next message of a fork server; b"" if it has ended."""
    try:
        return connection.recv(MESSAGES)
    except ConnectionResetError:  # it has ended without reading all requests. Its last message is still there.
        return connection.recv(MESSAGES)


def _spawn(spec: Mapping[str, Any], connection: int) -> int:
    """Start a process that imports the modules of a spec, and return its id.

    connection: the descriptor for fork requests

    Raise OSError if its interpreter cannot be started.
    """
    interpreter = spec["interpreter"]
    streams = [
        (os.POSIX_SPAWN_DUP2, connection, 0),
        *((os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_WRONLY, 0) for number in (1, 2)),
    ]
    return os.posix_spawn(
        interpreter,
        [interpreter, "-c", _BOOT, SOURCE, str(os.getpid()), *spec["modules"]],
        dict(spec["environment"]),
        file_actions=streams,
        setsid=True,
        setsigmask=(),
        setsigdef=ENDING,
    )


class ForkServers:
    """The fork servers of a run, by their specs. The arguments are those of `ForkServer`."""

    def __init__(self, isolation: str, log: ProcessLog) -> None:
        self._isolation = isolation
        self._log = log
        self._by_spec: dict[str, ForkServer] = {}

    def get(self, spec: Mapping[str, Any]) -> ForkServer | None:
        """Return the fork server of a spec, and start it if necessary. Return None if it cannot be used."""
        key = json.dumps([spec["interpreter"], spec["environment"], spec["modules"]])
        fork_server = self._by_spec.pop(key, None)
        if fork_server is None:
            self._make_room()
            try:
                fork_server = ForkServer(spec, self._isolation, self._log)
            except OSError as error:  # no such interpreter: the ranks' logs contain the error
                self._log.write("fork server failed to start", "warning", reason=str(error))
                return None
        self._by_spec[key] = fork_server  # the last one used is the last one
        return fork_server if fork_server.usable else None

    def alive(self) -> list[ForkServer]:
        """Return the fork servers whose processes are connected."""
        return [fork_server for fork_server in self._by_spec.values() if fork_server.usable]

    def _make_room(self) -> None:
        alive = self.alive()
        for fork_server in alive[: max(len(alive) - MOST + 1, 0)]:
            if not fork_server.busy:
                fork_server.close()
                self._by_spec = {key: other for key, other in self._by_spec.items() if other is not fork_server}
