"""The engine's interface to the supervisor: the kinds of instances, the programs of an instance as plain data, the
commands, and the events."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from allranks.errors import InputError, Problem
from allranks.local import boot
from allranks.local.instances.instance import InstanceKind
from allranks.local.instances.loopback import Loopback
from allranks.local.instances.rack import Rack
from allranks.local.options import AUTO

_log = logging.getLogger(__name__)

INSTANCE_KINDS: dict[str, InstanceKind] = {"rack": Rack(), "loopback": Loopback()}
"""By name, in order of preference. A new kind is a module beside this file and one row here."""

CLOSE_SECONDS = 30.0
"""Seconds for a supervisor to end its processes. Then it is killed, and they end with it."""

_LAST_SECONDS = 5.0
"""Seconds for events to arrive after the end of the supervisor: a stopped agent keeps the pipe open."""

_LOOK = 0.1
"""Seconds between two checks whether it has exited. In some versions of Python, `wait` waits for the pipes too."""


class UnfitError(Exception):
    """This machine does not support the requested kind of instance. The message is the reason."""


@dataclass(frozen=True)
class ForkServerSpec:
    """A fork server: a process that has imported modules, from which agents and their ranks are forked. Steps with
    equal specs share one.

    interpreter: its absolute path, as the ranks' PATH leads to it
    environment: the complete environment in which the modules are imported, sorted
    modules:     imported in this order. A module that cannot be imported is left to the ranks.
    """

    interpreter: str
    environment: tuple[tuple[str, str], ...]
    modules: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """A process to start on an instance: its name, unique within the step, its arguments, its complete environment, its
    working directory, and its log."""

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: str
    log: str


@dataclass(frozen=True)
class InstanceSpec:
    """An emulated instance and its configuration for a step.

    index:     number of the instance within the run
    hosts:     (address, name) of every instance of the step
    shm_size:  bytes of /dev/shm
    temporary: the folder for temporary files; it is mounted at /tmp if the instance has its own /tmp
    keep:      paths below this machine's /tmp that the step needs; they stay visible in the instance's own /tmp
    read_only: (source, target) of folders and files to mount read-only at `target`
    delay:     seconds until its programs start
    root:      the root filesystem of its container, in which only `keep` of this machine is visible; "" for none
    driver:    (source, target) of the files of this machine that its container has elsewhere
    forks:     the folder with `forkserver.shims` of the instance; "" without a fork server
    """

    index: int
    address: str
    hostname: str
    hosts: tuple[tuple[str, str], ...]
    shm_size: int
    temporary: str
    keep: tuple[str, ...] = ()
    read_only: tuple[tuple[str, str], ...] = ()
    root: str = ""
    driver: tuple[tuple[str, str], ...] = ()
    delay: float = 0.0
    forks: str = ""


@dataclass(frozen=True)
class Event:
    """An event that an agent or the supervisor reports.

    kind:    forked (the agent; it starts its programs next), started or exited (a program), moved (a program continues
             in the process `pid`, which was forked), used (`cpu` and `memory` of an ended process of a program that was
             forked), failed (the instance could not be set up; `reason`), usage (a sample of its ranks), usage_failed
             (there are no more samples; `reason`), gone (the agent and all its processes have ended)
    agent:   the name of the agent
    program: the name of the program; "" for an event of the agent itself
    code:    exit code; if negative, the number of the signal that ended the program
    pid:     process id of a program that started or moved, within the instance
    time:    seconds since the epoch at which the event occurred
    cpu:     seconds of CPU time of a program that exited, with the children that it waited for
    memory:  the peak of resident memory of the largest of these processes, in bytes
    ranks:   a sample, by the name of the program: CPU seconds, bytes of memory, and with GPUs the percentage of
             their use and the bytes of memory on them
    """

    kind: str
    agent: str
    time: float
    program: str = ""
    code: int | None = None
    reason: str = ""
    pid: int | None = None
    cpu: float | None = None
    memory: int | None = None
    ranks: Mapping[str, Sequence[float | None]] = field(default_factory=dict)


class Supervisor:
    """A running supervisor. `close` ends all its processes.

    kind: the kind of its instances
    """

    def __init__(self, kind: str, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        assert process.stdin is not None
        self.kind = kind
        self._process = process
        self._reader, self._writer = process.stdout, process.stdin
        self._queues: dict[str, asyncio.Queue[Event | None]] = {}
        self._pump: asyncio.Task[None] | None = None
        self._ended = ""
        self._injected: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._serving: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    @classmethod
    async def start(cls, kind: str, log: str = "", *, offline: bool = False) -> Supervisor:
        """Start a supervisor for a kind of instances, a key of INSTANCE_KINDS.

        log:     the file of the engine's log; "" for none
        offline: whether instances reach only each other

        Raise UnfitError if this machine does not support it.
        """
        process = await asyncio.create_subprocess_exec(
            *boot.command("supervisor", INSTANCE_KINDS[kind].isolation, log, "offline" if offline else ""),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            # Ctrl-C at the terminal must reach the engine only.
            start_new_session=True,
        )
        supervisor = cls(kind, process)
        try:
            first = await supervisor._reader.readline()
            code = 0 if first else await supervisor._exit_code()
        except asyncio.CancelledError:
            # After Ctrl-C at this point, no other code can end the process.
            await supervisor.close()
            raise
        # One that was killed leaves a run that fails, as it does later.
        event = json.loads(first or '{"event": "unfit", "reason": "the supervisor ended at once"}')
        if event["event"] == "unfit" and code >= 0:
            await supervisor.close()
            _log.info("instances unsupported", extra={"kind": kind, "reason": event["reason"]})
            raise UnfitError(event["reason"])
        supervisor._pump = asyncio.create_task(supervisor._read())
        return supervisor

    async def prepare(self, spec: ForkServerSpec) -> None:
        """Start this fork server if there is none yet, without waiting until it has imported its modules."""
        await self._send(command="prepare", fork_server=vars(spec))

    async def launch(
        self,
        agent: str,
        instance: InstanceSpec,
        programs: Sequence[Program],
        events: asyncio.Queue[Event | None],
        fork_server: ForkServerSpec | None = None,
    ) -> None:
        """Start programs on an instance, under an agent of that name. Put its events into the queue, `gone` last.

        events:      the reader may put None into it, as a reminder to itself
        fork_server: forks the agent, which forks the Python programs of the shells. Without one, or if it cannot import
                     its modules, they are executed.
        """
        self._queues[agent] = events
        if self._ended:
            self._report_end()
        await self._send(
            command="start",
            agent=agent,
            instance=vars(instance),
            programs=list(map(vars, programs)),
            fork_server=None if fork_server is None else vars(fork_server),
        )

    async def signal(self, agent: str, number: int) -> None:
        """Send a signal to the process groups of all programs of an agent. An agent that does not end them by SIGKILL
        within seconds is killed itself."""
        await self._send(command="signal", agent=agent, number=int(number))

    async def inject(self, file: str, agent: str, index: int, **fault: Any) -> None:
        """Inject a fault into the instance of that index and agent, and wait for it. If it fails, so does the step.

        file: a Python file, whose function `inject` is called with the index, the agent's process id and the fault
        """
        await self._send(command="inject", file=file, agent=agent, index=index, fault=fault)
        await self._answer(self._injected)

    async def serve(self, program: Program) -> tuple[str, int]:
        """Start a server for the instances, which ends with the run, and return its address. One at a time.

        program: gets the descriptor of its listening socket and the supervisor's process id as further arguments

        Raise OSError if it cannot be started.
        """
        await self._send(command="serve", program=vars(program))
        answer = await self._answer(self._serving) or {"reason": "the supervisor has ended"}
        if "reason" in answer:
            raise OSError(answer["reason"])
        return answer["host"], answer["port"]

    async def _answer(self, answers: asyncio.Queue[Any]) -> Any:
        """Return the next answer of the supervisor; None if it ends before."""
        answer = asyncio.ensure_future(answers.get())
        await asyncio.wait({answer, *filter(None, [self._pump])}, return_when=asyncio.FIRST_COMPLETED)
        return answer.result() if answer.done() else answer.cancel() and None

    async def close(self) -> None:
        """End all processes, and wait until they have ended."""
        self._writer.close()
        if self._pump is None:
            self._pump = asyncio.create_task(self._read())
        await self._kill_if_late(self._pump)
        await self._pump
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def _send(self, **command: Any) -> None:
        if self._ended:
            return
        self._writer.write((json.dumps(command, separators=(",", ":")) + "\n").encode())
        with contextlib.suppress(ConnectionError):  # `_read` reports the end of the supervisor
            await self._writer.drain()

    async def _read(self) -> None:
        """Pass events on until the supervisor has exited."""
        reading = asyncio.create_task(self._read_events())
        exiting = asyncio.create_task(self._exit_code())
        await asyncio.wait({reading, exiting}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({reading}, timeout=_LAST_SECONDS)
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        await self._kill_if_late(exiting)
        code = await exiting
        # Waiting callers must not wait indefinitely.
        self._ended = "the supervisor " + (
            "ended by itself" if code >= 0 else f"was ended by {signal.Signals(-code).name}"
        )
        _log.log(logging.WARNING if self._queues or code else logging.INFO, "supervisor exited", extra={"code": code})
        self._report_end()

    async def _read_events(self) -> None:
        while (line := await self._reader.readline()).endswith(b"\n"):
            message = json.loads(line)
            if message["event"] == "ready":
                continue
            if message["event"] in ("injected", "serving"):
                (self._injected if message["event"] == "injected" else self._serving).put_nowait(message)
                continue
            event = Event(message.pop("event"), **message)
            queue = self._queues.get(event.agent)
            if event.kind == "gone":
                self._queues.pop(event.agent, None)
            if queue is not None:
                queue.put_nowait(event)

    async def _exit_code(self) -> int:
        """Wait until the supervisor has exited, and return its code, even if other processes have its pipes open."""
        waiting = asyncio.ensure_future(self._process.wait())
        while self._process.returncode is None:
            await asyncio.wait({waiting}, timeout=_LOOK)
        waiting.cancel()
        return self._process.returncode

    async def _kill_if_late(self, task: asyncio.Task[Any]) -> None:
        """Kill the supervisor if a task that ends with it does not end in time."""
        await asyncio.wait({task}, timeout=CLOSE_SECONDS)
        if not task.done():
            _log.error("supervisor killed", extra={"reason": f"it did not end within {CLOSE_SECONDS:g} s"})
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    def _report_end(self) -> None:
        """Report the end of the agents that have not reported it: the supervisor has ended, and with it they have."""
        now = asyncio.get_running_loop().time()
        for agent, queue in self._queues.items():
            queue.put_nowait(Event("failed", agent, now, reason=self._ended))
            queue.put_nowait(Event("gone", agent, now))
        self._queues.clear()


async def start_supervisor(instances: str, log: str = "", *, offline: bool) -> tuple[Supervisor, str]:
    """Return a supervisor for a kind of instances, and a note on each preferred kind that this machine does not
    support.

    instances: the name of the kind. `auto` selects the first supported one

    Raise InputError if the kind is not supported.
    """
    missing: list[str] = []
    for name in INSTANCE_KINDS if instances == AUTO else (instances,):
        try:
            return await Supervisor.start(name, log, offline=offline), "; ".join(missing)
        except UnfitError as error:
            missing.append(f"{name}: {error}")
    fix = "use --instances loopback, which works everywhere"
    found = f"this machine has no {'; '.join(missing)}"
    raise InputError(Problem("--instances", found, "", fix, code="no-user-namespaces"))
