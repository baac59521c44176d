"""The agent's process: the supervisor forks it, it prepares its instance, waits for a step and runs it.

An isolation that does not end with a step lets the agent run one step after another: a chain of small steps then needs
no fork for each.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass

from allranks.local.instances.agent.agent import run_programs, wake_on_exit, write_event
from allranks.local.instances.agent.isolation import Isolation

LENGTH = 8
"""Bytes of the length prefix of a command. The first is 0, as no command has 2**56 bytes, and no number of a signal."""


@dataclass(frozen=True)
class AgentProcess:
    """An agent, as the supervisor sees it.

    control: the write end of a pipe: `start` commands, and after each the number of a signal, a byte each
    """

    pid: int
    control: int

    def send_start(self, command: bytes) -> None:
        """Send the engine's `start` command. Raise BrokenPipeError if the agent has ended."""
        data = len(command).to_bytes(LENGTH, "big") + command
        while data:
            data = data[os.write(self.control, data) :]

    def signal(self, number: int) -> None:
        """Ask the agent to send a signal to its programs. Raise BrokenPipeError if the agent has ended."""
        os.write(self.control, bytes([number]))

    def close(self) -> None:
        os.close(self.control)


def fork(isolation: Isolation, index: int, address: str, events: int, close_in_child: Iterable[int]) -> AgentProcess:
    """Fork an agent for the instance of that index.

    events:         the descriptor to which the agent writes events
    close_in_child: descriptors that the agent must close. Another agent would not notice the end of the supervisor as
                    long as a process holds its pipe open.

    Raise OSError if the fork fails.
    """
    listen, control = os.pipe()
    try:
        pid = isolation.fork(index, address)
    except OSError:
        os.close(listen)
        os.close(control)
        raise
    if pid:
        os.close(listen)
        return AgentProcess(pid, control)
    status = 1
    try:
        for descriptor in (control, *close_in_child):
            os.close(descriptor)
        status = _run(isolation, index, listen, events)
    finally:
        os._exit(status)


def _run(isolation: Isolation, index: int, control: int, events: int) -> int:
    """Prepare the instance, wait for steps and run them. Return the exit status of the agent."""
    failure: OSError | None = None
    try:
        isolation.prepare(index)
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
            if not run_programs(name, programs, control, wake, events, own_network=isolation.own_network):
                return 1
        except BrokenPipeError:
            return 1  # the engine has ended and no longer reads events
        except OSError as error:
            write_event(events, event="failed", agent=command["agent"], reason=str(error), time=time.time())
            return 1
        if not isolation.reusable:
            return 0
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
