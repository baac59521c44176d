"""The keeper of one instance during one step: starts what runs there, tells of their ends, and leaves nothing
behind."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from typing import Any

from allranks.local.instances.agent import starter
from allranks.local.instances.agent.descendants import end_descendants


def tell(events: int, **event: Any) -> None:
    """Write an event for the engine. A line below PIPE_BUF (4,096 bytes) is written whole, whoever else writes to the
    same pipe."""
    os.write(events, (json.dumps(event, separators=(",", ":")) + "\n").encode())


def keep(name: str, programs: list[dict[str, Any]], control: int, events: int) -> None:
    """Run until every program has ended, then kills whatever they left. The caller has made this process a subreaper
    or a namespace's first.

    programs: name, arguments, environment, folder, log of each
    control:  a pipe on which each byte is a signal's number for all of them; its end means that the supervisor is gone
    events:   where `started` and `exited` are told, with the program's name and the time
    """
    wake, wakened = os.pipe()
    os.set_blocking(wakened, False)
    signal.set_wakeup_fd(wakened)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    try:
        _run(name, programs, control, events, wake)
    finally:
        end_descendants()


def _run(name: str, programs: list[dict[str, Any]], control: int, events: int, wake: int) -> None:
    running: dict[int, str] = {}
    for program in programs:
        pid = starter.start(program["arguments"], program["environment"], program["folder"], program["log"])
        running[pid] = program["name"]
        tell(events, event="started", keeper=name, program=program["name"], pid=pid, time=time.time())
    while running:
        # SIGCHLD may come before select() waits: its byte is in the pipe by then, so nothing is missed.
        ready, _, _ = select.select([wake, control], [], [])
        if wake in ready:
            os.read(wake, 4096)
        while (ended := _reap()) is not None:
            pid, status = ended
            if pid in running:
                code = os.waitstatus_to_exitcode(status)
                tell(events, event="exited", keeper=name, program=running.pop(pid), code=code, time=time.time())
        if control in ready:
            numbers = os.read(control, 64)
            if not numbers:
                break
            for number in numbers:
                for pid in running:
                    _signal_group(pid, number)


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
        # Between fork and setsid there is no group of that name yet.
        try:
            os.kill(leader, number)
        except ProcessLookupError:
            return
