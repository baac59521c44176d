"""The engine's end of the supervisor: starts it, sends it commands, hands its events to whoever waits for them."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from allranks.local import boot


class UnfitError(Exception):
    """This machine cannot offer the kind of instances that was asked for; the text says why."""


@dataclass(frozen=True)
class Machine:
    """An emulated machine as a step finds it.

    index:     which of the run's machines it is
    hosts:     (address, name) of every instance of the step
    shm_size:  bytes of /dev/shm
    temporary: the folder for temporary files, which is /tmp where the machine has its own
    keep:      paths below /tmp that the step needs, although its /tmp is its own
    read_only: (source, target) of folders and files that are to be seen, but not changed, at `target`
    """

    index: int
    address: str
    hostname: str
    hosts: tuple[tuple[str, str], ...]
    shm_size: int
    temporary: str
    keep: tuple[str, ...] = ()
    read_only: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Program:
    """A process on a machine: its name among the step's, its arguments, all of its environment, its working directory,
    and its log."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: str
    log: str


@dataclass(frozen=True)
class Event:
    """What a keeper tells.

    kind:    started, exited (a program), failed (the machine could not be entered; `reason`), gone (the keeper and
             everything it started)
    program: whose event it is; "" for the keeper's own
    code:    exit code; below 0 the number of the signal that ended the program
    pid:     of a program that started, as the instance numbers its processes
    time:    seconds since the epoch, taken where it happened
    """

    kind: str
    keeper: str
    time: float
    program: str = ""
    code: int | None = None
    reason: str = ""
    pid: int | None = None


class Supervisor:
    """A running supervisor. `close` ends every process that it ever started.

    kind: of the machines that it offers
    """

    def __init__(
        self,
        kind: str,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self.kind = kind
        self._process = process
        self._reader = reader
        self._writer = writer
        self._queues: dict[str, asyncio.Queue[Event]] = {}
        self._pump: asyncio.Task[None] | None = None

    @classmethod
    async def start(cls, kind: str) -> Supervisor:
        """Start a supervisor for `loopback` or `rack` machines. Raise UnfitError if this machine cannot offer
        them."""
        process = await asyncio.create_subprocess_exec(
            *boot.command("instances.agent.main", kind),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            # A Ctrl-C at the terminal is the engine's to handle.
            start_new_session=True,
        )
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            first = await process.stdout.readline()
        except asyncio.CancelledError:
            # Ctrl-C at this moment. Nobody else knows the process yet.
            process.stdin.close()
            await process.wait()
            raise
        event = json.loads(first) if first else {"event": "unfit", "reason": "the supervisor ended at once"}
        if event["event"] == "unfit":
            process.stdin.close()
            await process.wait()
            raise UnfitError(event["reason"])
        supervisor = cls(kind, process, process.stdout, process.stdin)
        supervisor._pump = asyncio.create_task(supervisor._read())
        return supervisor

    async def launch(
        self, keeper: str, machine: Machine, programs: Sequence[Program], events: asyncio.Queue[Event]
    ) -> None:
        """Start a keeper on the machine, and it the programs. Events go to the queue until `gone`."""
        self._queues[keeper] = events
        await self._send(
            command="start",
            keeper=keeper,
            machine=vars(machine),
            programs=[vars(program) for program in programs],
        )

    async def signal(self, keeper: str, number: int) -> None:
        """Send a signal to all programs of the keeper and to what they started in their process groups."""
        await self._send(command="signal", keeper=keeper, number=int(number))

    async def close(self) -> None:
        """End everything and waits until it is gone."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        await self._process.wait()
        if self._pump is not None:
            await self._pump

    async def _send(self, **command: Any) -> None:
        self._writer.write((json.dumps(command, separators=(",", ":")) + "\n").encode())
        with contextlib.suppress(ConnectionError):  # its death is told by the end of its events
            await self._writer.drain()

    async def _read(self) -> None:
        while line := await self._reader.readline():
            told = json.loads(line)
            if told["event"] == "ready":
                continue
            event = Event(
                told["event"],
                told["keeper"],
                told["time"],
                told.get("program", ""),
                told.get("code"),
                told.get("reason", ""),
                told.get("pid"),
            )
            queue = self._queues.get(event.keeper)
            if event.kind == "gone":
                self._queues.pop(event.keeper, None)
            if queue is not None:
                queue.put_nowait(event)
        # Whatever still waits must not wait for ever: nothing that this supervisor started is left by now.
        now = asyncio.get_running_loop().time()
        for keeper, queue in self._queues.items():
            queue.put_nowait(Event("failed", keeper, now, reason="the supervisor was killed"))
            queue.put_nowait(Event("gone", keeper, now))
        self._queues.clear()
