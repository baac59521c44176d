"""What the agent of one instance does during one step: start the programs, report their exits, kill what is left."""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from allranks.local.instances.agent import spawn
from allranks.local.instances.agent.descendants import end_descendants
from allranks.local.instances.agent.sampling import Sampling, Write, cpu_seconds, peak_memory

StartProgram = Callable[[dict[str, Any]], int]
"""Starts a program of the `start` command and returns its process id."""


def write_event(events: int, **event: Any) -> None:
    """Write an event for the engine. A line shorter than PIPE_BUF (4,096 bytes) is written atomically, although other
    processes write to the same pipe."""
    os.write(events, (json.dumps(event, separators=(",", ":")) + "\n").encode())


def wake_on_exit() -> int:
    """Return the read end of a pipe that gets a byte whenever a child of this process exits."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reader


def run_programs(
    name: str,
    programs: list[dict[str, Any]],
    control: int,
    wake: int,
    events: int,
    *,
    own_network: bool,
    start: StartProgram = spawn.start,
) -> bool:
    """Run programs until all have exited, kill the processes that they left behind, and report `gone`.

    The caller must have made this process a subreaper or the first process of a PID namespace.

    programs:    name, arguments, environment, folder and log of each program
    control:     a pipe. Each byte is the number of a signal to send to all programs. Its end means that the supervisor
                 has ended.
    wake:        of `wake_on_exit`
    events:      the descriptor for the events: `started` and `exited` with the program's name, `usage`, and `gone`
    own_network: whether no other instance uses the network of this one
    start:       starts a program

    Return False if the supervisor has ended. Nothing reports `gone` then.
    """
    write = partial(write_event, events, agent=name)
    sampling = Sampling(programs, own_network=own_network, write=write)
    try:
        if not _run(programs, control, wake, write, sampling, start):
            return False
    finally:
        sampling.close()
        end_descendants()
    write(event="gone", time=time.time())
    return True


def _run(
    programs: list[dict[str, Any]], control: int, wake: int, write: Write, sampling: Sampling, start: StartProgram
) -> bool:
    running: dict[int, str] = {}
    for program in programs:
        pid = start(program)
        running[pid] = program["name"]
        write(event="started", program=program["name"], pid=pid, time=time.time())
    sampling.begin(running)
    while running:
        # A SIGCHLD that arrives before select() waits has already written its byte to the pipe.
        ready, _, _ = select.select([wake, control], [], [], sampling.timeout)
        if wake in ready:
            os.read(wake, 4096)
        while (ended := _reap()) is not None:
            pid, status, usage = ended
            sampling.reaped(pid, usage)
            if pid in running:
                write(
                    event="exited",
                    program=running.pop(pid),
                    code=os.waitstatus_to_exitcode(status),
                    cpu=cpu_seconds(usage),
                    memory=peak_memory(usage),
                    time=time.time(),
                )
        if control in ready:
            numbers = os.read(control, 64)
            if not numbers:
                return False
            for number in numbers:
                for pid in running:
                    _signal_group(pid, number)
        if running:
            sampling.sample_if_due()
    return True


def _reap() -> tuple[int, int, resource.struct_rusage] | None:
    """Reap one child that has ended. Return its process id, status and resource usage; None if there is none."""
    # os.wait4 imports `resource` at its first call: here it is imported before agents are forked.
    try:
        pid, status, usage = os.wait4(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, status, usage) if pid else None


def _signal_group(leader: int, number: int) -> None:
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        # Between fork and setsid, the process group does not exist yet.
        try:
            os.kill(leader, number)
        except ProcessLookupError:
            return
