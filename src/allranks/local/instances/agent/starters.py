"""The starters of a run, as the supervisor sees them: processes that have imported modules and fork agents."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable, Mapping
from typing import Any

from allranks.local.boot import SOURCE
from allranks.local.instances.agent.agent_process import AgentProcess
from allranks.local.instances.agent.borrowing import borrow
from allranks.local.instances.agent.spawn import ENDING

MOST = 3
"""Maximum number of starters at the same time. Each takes the memory of what it has imported."""

MESSAGES = 1 << 16
"""Bytes to receive at once."""

# The package is found by its path alone, so that the folder that contains it is not searched by the imports of others.
_BOOT = """
import sys, types
source, *arguments = sys.argv[1:]
package = sys.modules["allranks"] = types.ModuleType("allranks")
package.__path__ = [source + "/allranks"]
del source, package, types
from allranks.local.forkserver.main import main
main(*arguments)
"""


class Starter:
    """A starter's process. It imports while the supervisor goes on.

    pid:    0 if it was borrowed: then it is no child of this process
    usable: whether it forks agents, or will when it has imported its modules
    reason: why it is not usable
    used:   when it was last used, in order
    """

    def __init__(self, spec: Mapping[str, Any], isolation: str, warm: str = "") -> None:
        """Borrow the process, or else start it.

        spec:      as of `programs.StarterSpec`
        isolation: ``MODULE:CLASS``
        warm:      the socket of the process that lends starters; "" for none

        Raise OSError if its interpreter cannot be started.
        """
        self._isolation = isolation
        self.connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.pid = 0 if warm and borrow(warm, spec, theirs.fileno()) else spawn(spec, theirs.fileno())
        self.usable = True
        self.reason = ""
        self.used = 0
        self._ready = False
        self._number = 0
        self._waiting: list[tuple[AgentProcess, int, int | None]] = []
        self._forking: dict[int, AgentProcess] = {}
        self.forked: set[int] = set()

    def fork(self, agent: AgentProcess, events: int, network: int | None) -> None:
        """Fork the agent, when the modules have been imported.

        events, network: descriptors for it
        """
        if self._ready:
            self._request(agent, events, network)
        else:
            self._waiting.append((agent, events, network))

    def receive(self, ended: Callable[[int, int], None]) -> list[AgentProcess]:
        """Execute what the process says. Return the agents that it cannot fork.

        ended: called with the process id and the status of an agent that has ended
        """
        message = self._message()
        if message is None:
            return self._end()
        if message["event"] == "ready":
            self._ready = True
            waiting, self._waiting = self._waiting, []
            for agent, events, network in waiting:
                self._request(agent, events, network)
        elif message["event"] == "unfit":
            self.reason = message["reason"]
        elif message["event"] == "forked":
            agent = self._forking.pop(message["number"])
            self.forked.add(message["pid"])
            with contextlib.suppress(BrokenPipeError):  # it has ended already, which the next message says
                agent.forked(message["pid"])
        elif message["event"] == "failed":
            return [self._forking.pop(message["number"])]
        elif message["event"] == "ended":
            self.forked.discard(message["pid"])
            ended(message["pid"], message["status"])
        return []

    @property
    def busy(self) -> bool:
        """Whether agents wait to be forked."""
        return bool(self._waiting or self._forking)

    def close(self) -> None:
        """Let the process end. The agents that were forked from it go on, unless it was borrowed."""
        self.usable = False
        self.connection.close()

    def end(self) -> None:
        """End a borrowed process and its agents, and wait until they have ended."""
        if self.pid == 0 and self.usable:
            with contextlib.suppress(OSError):
                self.connection.shutdown(socket.SHUT_WR)
                while self.connection.recv(MESSAGES):
                    continue
        self.close()

    def _request(self, agent: AgentProcess, events: int, network: int | None) -> None:
        self._number += 1
        self._forking[self._number] = agent
        request = {"isolation": self._isolation, "number": self._number}
        descriptors = [agent.listen, events, *([] if network is None else [network])]
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # `receive` notices the end
            socket.send_fds(self.connection, [json.dumps(request).encode()], descriptors)

    def _message(self) -> dict[str, Any] | None:
        try:
            data = self.connection.recv(MESSAGES)
        except ConnectionResetError:
            data = b""
        return json.loads(data) if data else None

    def _end(self) -> list[AgentProcess]:
        lost = [*(agent for agent, _, _ in self._waiting), *self._forking.values()]
        self._waiting, self._forking = [], {}
        self.reason = self.reason or "it ended"
        self.close()
        return lost


def spawn(spec: Mapping[str, Any], connection: int) -> int:
    """Start a process that imports the modules of a spec, and return its id.

    connection: a descriptor, through which it is asked to fork

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


class Starters:
    """The starters of a run, by what they are."""

    def __init__(self, isolation: str, warm: str = "") -> None:
        """
        isolation: ``MODULE:CLASS``
        warm:      the socket of the process that lends starters; "" for none
        """
        self._isolation = isolation
        self._warm = warm
        self._by_spec: dict[str, Starter] = {}
        self._used = 0

    def get(self, spec: Mapping[str, Any]) -> Starter | None:
        """Return the starter of a spec; start it if it is not there. None if it cannot be used."""
        key = key_of(spec)
        starter = self._by_spec.get(key)
        if starter is None:
            self._make_room()
            try:
                starter = Starter(spec, self._isolation, self._warm)
            except OSError:  # no such interpreter: the ranks' logs say so
                return None
            self._by_spec[key] = starter
        self._used += 1
        starter.used = self._used
        return starter if starter.usable else None

    def alive(self) -> list[Starter]:
        """Return those whose processes are connected."""
        return [starter for starter in self._by_spec.values() if starter.usable]

    def end(self) -> None:
        """End the borrowed starters, and wait until they and their agents have ended."""
        for starter in self.alive():
            starter.end()

    def _make_room(self) -> None:
        alive = sorted(self.alive(), key=lambda starter: starter.used)
        for starter in alive[: max(len(alive) - MOST + 1, 0)]:
            if not starter.busy and (starter.pid or not starter.forked):
                starter.close()
                self._by_spec = {key: other for key, other in self._by_spec.items() if other is not starter}


def key_of(spec: Mapping[str, Any]) -> str:
    """Return what equal specs have in common."""
    return json.dumps([spec["interpreter"], spec["environment"], spec["modules"]])
