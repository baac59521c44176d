"""A keeper as the supervisor sees it: a process that gets its machine ready, waits for a step, and keeps it."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from dataclasses import dataclass

from allranks.local.instances.agent.agent import keep, tell
from allranks.local.instances.agent.machines import Machines

LENGTH = 8
"""Bytes in which an order's length stands before it."""


@dataclass(frozen=True)
class KeeperProcess:
    """control: a pipe to it. First comes the order, then each byte is a signal's number; its end means that the
    supervisor is gone."""

    pid: int
    control: int

    def order(self, command: bytes) -> None:
        """Say what to keep: the engine's `start` command. Raise BrokenPipeError if the keeper is gone."""
        data = len(command).to_bytes(LENGTH, "big") + command
        while data:
            data = data[os.write(self.control, data) :]

    def signal(self, number: int) -> None:
        """Has the keeper send a signal to its programs. Raise BrokenPipeError if it is gone."""
        os.write(self.control, bytes([number]))

    def close(self) -> None:
        os.close(self.control)


def fork(machines: Machines, index: int, address: str, events: int, not_its_own: Iterable[int]) -> KeeperProcess:
    """Fork a keeper for the machine of that index.

    events:      where it tells of its programs
    not_its_own: descriptors to close: another keeper's pipe held open would hide the supervisor's death from it

    Raise OSError if it cannot be forked.
    """
    listen, control = os.pipe()
    try:
        pid = machines.fork(index, address)
    except OSError:
        os.close(listen)
        os.close(control)
        raise
    if pid:
        os.close(listen)
        return KeeperProcess(pid, control)
    status = 1
    try:
        for descriptor in (control, *not_its_own):
            os.close(descriptor)
        status = _live(machines, index, listen, events)
    finally:
        os._exit(status)


def _live(machines: Machines, index: int, control: int, events: int) -> int:
    """Return the exit status."""
    unready: OSError | None = None
    try:
        machines.prepare(index)
    except OSError as error:
        unready = error  # for whoever comes with an order
    length = _read(control, LENGTH)
    order = _read(control, int.from_bytes(length, "big"))
    if not order:
        return 0
    command = json.loads(order)
    try:
        if unready is not None:
            raise unready
        machines.enter(command["machine"])
        keep(command["keeper"], command["programs"], control, events)
    except BrokenPipeError:
        return 1  # the engine is gone, and nobody reads events any more
    except OSError as error:
        tell(events, event="failed", keeper=command["keeper"], reason=str(error), time=time.time())
        return 1
    return 0


def _read(descriptor: int, count: int) -> bytes:
    """So many bytes and none of what follows; b"" where the other end is closed before."""
    data = b""
    while len(data) < count:
        if not (more := os.read(descriptor, count - len(data))):
            return b""
        data += more
    return data
