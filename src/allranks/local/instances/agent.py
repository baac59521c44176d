"""The agent of an instance: prepare the instance, start the programs of a step, report their exits, and kill the rest.

The supervisor or a fork server forks one for each instance of a step.
"""

import contextlib
import json
import os
import resource
import select
import signal
import socket
import time
from collections.abc import Callable, Collection, Iterable, Iterator, MutableMapping, Sequence
from functools import partial
from typing import Any, NoReturn, Protocol

from allranks.local.instances import processes
from allranks.local.instances.instance import AgentIsolation
from allranks.local.instances.process_log import ProcessLog, describe_exit
from allranks.local.instances.processes import end_descendants, write_event
from allranks.local.instances.sampling import Sampling, cpu_seconds, peak_memory

_LENGTH = 8
"""Bytes of the length prefix of a command."""


class ForkedPrograms(Protocol):
    """The programs that an agent forks for the shells of its instance. See `forkserver.server.Server`."""

    @property
    def sockets(self) -> Sequence[socket.socket]: ...

    def handle(self, ready: Collection[object]) -> None: ...

    def signal(self, number: int, groups: Collection[int]) -> None: ...

    def report_end(self, pid: int, status: int, usage: resource.struct_rusage) -> None: ...


Fork = Callable[[str, MutableMapping[int, str], Callable[..., None], ProcessLog], ForkedPrograms]
"""Makes the forked programs of an instance from: its folder for them, the names of its programs by process id, a
function that writes an event, and the log."""


class AgentProcess:
    """The supervisor's handle of an agent. Commands are queued until it is forked.

    name:    the name of the agent in its events
    index:   the index of its instance
    address: the address of its instance
    command: the engine's `start` command
    pid:     0 until it is forked
    control: the write end of a pipe: the command, and after it the numbers of signals, a byte each
    listen:  its read end, for the agent
    """

    def __init__(self, name: str, index: int, address: str, command: bytes) -> None:
        self.name = name
        self.index = index
        self.address = address
        self.pid = 0
        self.listen, self.control = os.pipe()
        self._unsent = len(command).to_bytes(_LENGTH, "big") + command

    def fork(self, isolation: AgentIsolation, events: int, close_in_child: Iterable[int], log: ProcessLog) -> int:
        """Fork the agent from this process. Return its process id, which `forked` must get.

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
            run(isolation, self.listen, events, log.for_process(f"agent {self.index}"))
        return pid

    def forked(self, pid: int) -> None:
        """Continue now that the agent has been forked. Raise BrokenPipeError if it has ended already."""
        self.pid = pid
        os.close(self.listen)
        unsent, self._unsent = self._unsent, b""
        self._send(unsent)

    def signal(self, number: int) -> None:
        """Ask the agent to send a signal to its programs. Raise BrokenPipeError if the agent has ended."""
        self._send(bytes([number]))

    def descriptors(self) -> list[int]:
        """Return the open descriptors, which other processes must not inherit."""
        return [self.control] if self.pid else [self.control, self.listen]

    def close(self) -> None:
        for descriptor in self.descriptors():
            os.close(descriptor)

    def _send(self, data: bytes) -> None:
        if not self.pid:
            self._unsent += data
            return
        while data:
            data = data[os.write(self.control, data) :]


def run(isolation: AgentIsolation, control: int, events: int, log: ProcessLog, fork: Fork | None = None) -> NoReturn:
    """Run as the agent, in a process that has just been forked: prepare the instance, run the programs, and exit.

    control: the read end of `AgentProcess.control`. Its end means that the supervisor has ended.
    events:  the descriptor for the events: `started` and `exited` with the program's name, `usage`, `gone`, `failed`
    fork:    makes the forked programs of the instance; None: Python programs are executed
    """
    status = 1
    try:
        if line := _read(control, int.from_bytes(_read(control, _LENGTH), "big")):
            command = json.loads(line)
            agent = _Agent(command["agent"], isolation, control, events, log, fork)
            status = 0 if agent.run(command["instance"], command["programs"]) else 1
    finally:
        os._exit(status)


class _Agent:
    def __init__(
        self, name: str, isolation: AgentIsolation, control: int, events: int, log: ProcessLog, fork: Fork | None
    ) -> None:
        self._name = name
        self._isolation = isolation
        self._control = control
        self._write = partial(write_event, events, agent=name)
        self._log = log
        self._fork = fork

    def run(self, instance: dict[str, Any], programs: list[dict[str, Any]]) -> bool:
        """Run programs on the instance until all have exited, kill the processes that they left behind, and report
        `gone`. Return False if the supervisor must do that, or has ended."""
        try:
            self._isolation.enter(instance)
            if instance["delay"]:
                time.sleep(instance["delay"])
            names: dict[int, str] = {}
            sampling, forks = Sampling(programs, self._write), self._forks(instance["forks"], names)
            try:
                if not self._run_programs(programs, names, sampling, forks):
                    self._log.write("agent lost its supervisor", "warning", agent=self._name)
                    return False
            finally:
                sampling.close()
                end_descendants()
            self._write(event="gone", time=time.time())
        except BrokenPipeError:
            return False  # the engine has ended and no longer reads events
        except OSError as error:
            self._log.write("instance set-up failed", "error", agent=self._name, reason=str(error))
            self._write(event="failed", reason=str(error), time=time.time())
            return False
        return True

    def _forks(self, folder: str, names: dict[int, str]) -> ForkedPrograms | None:
        try:
            return self._fork(folder, names, self._write, self._log) if self._fork and folder else None
        except OSError as error:  # a file system without sockets
            self._log.write("programs are not forked", "warning", agent=self._name, reason=str(error))
            return None

    def _run_programs(
        self,
        programs: list[dict[str, Any]],
        names: dict[int, str],
        sampling: Sampling,
        forks: ForkedPrograms | None,
    ) -> bool:
        """Return whether the programs have exited before the supervisor has ended.

        names: the names of the programs, by process id
        """
        wake = wake_on_exit()
        for program in programs:
            pid = processes.start(program)
            names[pid] = program["name"]
            self._log.write("program started", agent=self._name, program=program["name"], started=pid)
            self._write(event="started", program=program["name"], pid=pid, time=time.time())
        running = set(names)
        sampling.begin(names)
        while running:
            # A SIGCHLD that arrives before select() waits has already written its byte to the pipe.
            watched: list[Any] = [wake, self._control, *(forks.sockets if forks else ())]
            ready, _, _ = select.select(watched, [], [], sampling.timeout)
            if forks is not None:
                forks.handle(ready)
            if wake in ready:
                os.read(wake, 4096)
            for pid, status, usage in ended_children():
                sampling.count_reaped(pid, usage)
                if pid in running:
                    running.remove(pid)
                    code = os.waitstatus_to_exitcode(status)
                    end = {"program": names[pid], "ended": pid, **describe_exit(code)}
                    self._log.write("program ended", agent=self._name, **end)
                    used = {"cpu": cpu_seconds(usage), "memory": peak_memory(usage)}
                    self._write(event="exited", program=names[pid], code=code, **used, time=time.time())
                elif forks is not None:
                    forks.report_end(pid, status, usage)
            if self._control in ready:
                numbers = os.read(self._control, 64)
                if not numbers:
                    return False
                for number in numbers:
                    signaled = [names[pid] for pid in running]
                    self._log.write("signal sent", agent=self._name, signal=number, programs=signaled)
                    if forks is not None:
                        forks.signal(number, running)
                    for pid in running:
                        processes.signal_group(pid, number)
            if running:
                sampling.sample_if_due()
        return True


def _read(descriptor: int, count: int) -> bytes:
    """Read exactly `count` bytes. Return b"" if the other end is closed before that."""
    data = b""
    while len(data) < count:
        if not (more := os.read(descriptor, count - len(data))):
            return b""
        data += more
    return data


def wake_on_exit() -> int:
    """Return the read end of a pipe that gets a byte whenever a child of this process exits."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reader


def ended_children() -> Iterator[tuple[int, int, resource.struct_rusage]]:
    """Reap the children that have ended, and yield the process id, the status and the resource usage of each."""
    # os.wait4 imports `resource` at its first call: here it is imported before agents are forked.
    with contextlib.suppress(ChildProcessError):
        while (ended := os.wait4(-1, os.WNOHANG))[0]:
            yield ended
