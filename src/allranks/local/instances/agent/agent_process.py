"""The agent's process: the supervisor or a starter forks it, it prepares its instance, waits for a step and runs it.

An isolation that does not end with a step lets the agent run one step after another: a chain of small steps then needs
no fork for each.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from typing import NoReturn

from allranks.local.instances.agent import spawn
from allranks.local.instances.agent.agent import StartProgram, run_programs, wake_on_exit, write_event
from allranks.local.instances.agent.isolation import AgentIsolation

LENGTH = 8
"""Bytes of the length prefix of a command. The first is 0, as no command has 2**56 bytes, and no number of a signal."""


class AgentProcess:
    """An agent, as the supervisor sees it. What is sent to it before it is forked waits for it.

    index:   of its instance
    address: of its instance
    pid:     0 until it is forked
    control: the write end of a pipe: `start` commands, and after each the number of a signal, a byte each
    listen:  its read end, for the agent
    """

    def __init__(self, index: int, address: str) -> None:
        self.index = index
        self.address = address
        self.pid = 0
        self.listen, self.control = os.pipe()
        self._unsent = b""

    def fork(
        self, isolation: AgentIsolation, events: int, close_in_child: Iterable[int], start: StartProgram = spawn.start
    ) -> None:
        """Fork the agent from this process.

        events:         the descriptor to which the agent writes events
        close_in_child: descriptors that the agent must close. Another agent would not notice the end of the supervisor
                        as long as a process holds its pipe open.

        Raise OSError if the fork fails.
        """
        pid = isolation.fork()
        if not pid:
            try:
                for descriptor in (self.control, *close_in_child):
                    os.close(descriptor)
            except BaseException:
                os._exit(1)
            run(isolation, self.listen, events, start)
        self.forked(pid)

    def forked(self, pid: int) -> None:
        """Continue now that the agent has been forked."""
        self.pid = pid
        os.close(self.listen)
        unsent, self._unsent = self._unsent, b""
        self._send(unsent)

    def send_start(self, command: bytes) -> None:
        """Send the engine's `start` command. Raise BrokenPipeError if the agent has ended."""
        self._send(len(command).to_bytes(LENGTH, "big") + command)

    def signal(self, number: int) -> None:
        """Ask the agent to send a signal to its programs. Raise BrokenPipeError if the agent has ended."""
        self._send(bytes([number]))

    def descriptors(self) -> list[int]:
        """Return the open descriptors, of which other processes must have no copies."""
        return [self.control] if self.pid else [self.control, self.listen]

    def close(self) -> None:
        """Close the pipe."""
        for descriptor in self.descriptors():
            os.close(descriptor)

    def _send(self, data: bytes) -> None:
        if not self.pid:
            self._unsent += data
            return
        while data:
            data = data[os.write(self.control, data) :]


def run(isolation: AgentIsolation, control: int, events: int, start: StartProgram) -> NoReturn:
    """Be the agent, in a process that has just been forked: prepare the instance, wait for steps, run them, and exit.

    control: the read end of `AgentProcess.control`
    start:   starts a program
    """
    status = 1
    try:
        status = _run(isolation, control, events, start)
    finally:
        os._exit(status)


def _run(isolation: AgentIsolation, control: int, events: int, start: StartProgram) -> int:
    """Return the exit status of the agent."""
    failure: OSError | None = None
    try:
        isolation.prepare()
    except OSError as error:
        failure = error  # reported when a step is to start
    wake = wake_on_exit()
    while line := _read_start(control):
        command = json.loads(line)
        try:
            if failure is not None:
                raise failure
            isolation.enter(command["instance"])
            name, programs = command["agent"], command["programs"]
            if not run_programs(name, programs, control, wake, events, own_network=isolation.own_network, start=start):
                return 1
        except BrokenPipeError:
            return 1  # the engine has ended and no longer reads events
        except OSError as error:
            write_event(events, event="failed", agent=command["agent"], reason=str(error), time=time.time())
            return 1
    return 0


def _read_start(control: int) -> bytes:
    """Return the next `start` command; b"" if the supervisor has ended."""
    while first := os.read(control, 1):
        if first == b"\0":  # else the number of a signal for a step that has just ended
            return _read(control, int.from_bytes(_read(control, LENGTH - 1), "big"))
    return b""


def _read(descriptor: int, count: int) -> bytes:
    """Read exactly `count` bytes. Return b"" if the other end is closed before that."""
    data = b""
    while len(data) < count:
        if not (more := os.read(descriptor, count - len(data))):
            return b""
        data += more
    return data
