"""What the agent of one instance does during one step: start the programs, report their exits, kill what is left."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from typing import Any

from allranks.local.instances.agent import starter
from allranks.local.instances.agent.descendants import end_descendants


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


def run_programs(name: str, programs: list[dict[str, Any]], control: int, wake: int, events: int) -> bool:
    """Run programs until all have exited, kill the processes that they left behind, and report `gone`.

    The caller must have made this process a subreaper or the first process of a PID namespace.

    programs: name, arguments, environment, folder and log of each program
    control:  a pipe. Each byte is the number of a signal to send to all programs. Its end means that the supervisor has
              ended.
    wake:     of `wake_on_exit`
    events:   the descriptor for the events: `started` and `exited` with the program's name, and `gone`

    Return False if the supervisor has ended. Nothing reports `gone` then.
    """
    try:
        if not _run(name, programs, control, wake, events):
            return False
    finally:
        end_descendants()
    write_event(events, event="gone", agent=name, time=time.time())
    return True


def _run(name: str, programs: list[dict[str, Any]], control: int, wake: int, events: int) -> bool:
    running: dict[int, str] = {}
    for program in programs:
        pid = starter.start(program["arguments"], program["environment"], program["folder"], program["log"])
        running[pid] = program["name"]
        write_event(events, event="started", agent=name, program=program["name"], pid=pid, time=time.time())
    while running:
        # A SIGCHLD that arrives before select() waits has already written its byte to the pipe.
        ready, _, _ = select.select([wake, control], [], [])
        if wake in ready:
            os.read(wake, 4096)
        while (ended := _reap()) is not None:
            pid, status = ended
            if pid in running:
                code = os.waitstatus_to_exitcode(status)
                write_event(events, event="exited", agent=name, program=running.pop(pid), code=code, time=time.time())
        if control in ready:
            numbers = os.read(control, 64)
            if not numbers:
                return False
            for number in numbers:
                for pid in running:
                    _signal_group(pid, number)
    return True


def _reap() -> tuple[int, int] | None:
    try:
        pid, status = os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return None
    return (pid, status) if pid else None


def _signal_group(leader: int, number: int) -> None:
    try:
        os.killpg(leader, number)
    except ProcessLookupError:
        # Between fork and setsid, the process group does not exist yet.
        try:
            os.kill(leader, number)
        except ProcessLookupError:
            return
