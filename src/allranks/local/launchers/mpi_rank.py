"""Wrapper that mpirun starts for each rank: start the rank with its variables, folder and log, and report its start and
exit to the engine."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

from allranks.local.instances import processes
from allranks.local.instances.sampling import cpu_seconds, peak_memory

FROM_MPIRUN = ("OMPI_", "PMIX_", "OPAL_", "ORTE_")
"""Prefixes of the variables in which mpirun passes a rank its number and its connection."""

ANSWER = 4096
"""Maximum bytes of an answer of a fork server."""


def main(ranks: str, events_file: str) -> None:
    """Run one rank, and exit with its exit code or signal.

    ranks:       a JSON file with each rank as of `supervisor.Program.data`, and in `socket` the path of the fork server
                 of its instance, if it has one
    events_file: the file for `started`, `exited` and `failed` events, one JSON object per line
    """
    number = int(os.environ["OMPI_COMM_WORLD_RANK"])
    with open(ranks, encoding="utf-8") as file:
        programs = json.load(file)
    world_size = int(os.environ["OMPI_COMM_WORLD_SIZE"])
    if world_size != len(programs):
        # Such as an mpirun that ignores the hosts: each instance would train on its own.
        reason = f"mpirun started a world of {world_size} ranks; the step was declared with {len(programs)}"
        _write_event(events_file, event="failed", rank=number, reason=reason, time=time.time())
        os._exit(1)
    program = programs[number]
    from_mpirun = {name: value for name, value in os.environ.items() if name.startswith(FROM_MPIRUN)}
    program["environment"] = {**program["environment"], **from_mpirun}
    pid, wait = _start(program)

    def forward(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):  # the rank has just ended
            os.killpg(os.getpgid(pid), number)

    for forwarded in (signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
        signal.signal(forwarded, forward)
    _write_event(events_file, event="started", rank=number, pid=pid, time=time.time())
    end = wait()
    _write_event(events_file, event="exited", rank=number, **end, time=time.time())
    code = end["code"]
    if code < 0:
        # mpirun must see the same signal.
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


def _start(program: dict[str, Any]) -> tuple[int, Callable[[], dict[str, Any]]]:
    """Start a rank. Return its process id, and a function that waits for its end and returns its `code`, `cpu` and
    `memory`, as in the agent's events."""
    if program.get("python") is not None and "socket" in program:
        with contextlib.suppress(OSError):  # no fork server could fork this instance's agent
            return _forked(program)
    pid = processes.start(program)

    def wait() -> dict[str, Any]:
        _, status, usage = os.wait4(pid, 0)
        return {"code": os.waitstatus_to_exitcode(status), "cpu": cpu_seconds(usage), "memory": peak_memory(usage)}

    return pid, wait


def _forked(program: dict[str, Any]) -> tuple[int, Callable[[], dict[str, Any]]]:
    """Fork a rank through the server of the instance. Raise OSError if no server runs."""
    folder, name = os.path.split(program.pop("socket"))
    os.chdir(folder)  # the path of a socket may have 108 characters; a run's folder has more
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.connect(name)
    server.send(json.dumps(program).encode())
    pid: int = json.loads(server.recv(ANSWER) or b'{"pid": 0}')["pid"]
    if not pid:
        raise ConnectionResetError(f"the server at {name} has ended")

    def wait() -> dict[str, Any]:
        # A server that was killed does not answer. Its ranks are killed too.
        answer: dict[str, Any] = json.loads(server.recv(ANSWER) or b'{"code": -9, "cpu": null, "memory": null}')
        return answer

    return pid, wait


def _write_event(events_file: str, **event: object) -> None:
    """Append a line. A line shorter than PIPE_BUF is written atomically, although other processes append too."""
    descriptor = os.open(events_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, (json.dumps(event, separators=(",", ":")) + "\n").encode())
    os.close(descriptor)
