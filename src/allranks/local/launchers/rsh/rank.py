"""Wrapper that mpirun starts for each rank: start the rank with its variables, folder and log, and report its start and
exit to the engine."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from typing import Any, Protocol

from allranks.local.instances.agent import spawn
from allranks.local.instances.agent.sampling import cpu_seconds, peak_memory

FROM_MPIRUN = ("OMPI_", "PMIX_", "OPAL_", "ORTE_")
"""Prefixes of the variables in which mpirun passes a rank its number and its connection."""


def main(ranks: str, events_file: str) -> None:
    """Run one rank, and exit with its exit code or signal.

    ranks:       a JSON file with each rank as of `programs.Program.data`, and in `socket` the path of the server of its
                 instance that forks it, if there is one. With `inherits`, it also has the variables of this process:
                 those that mpirun was started with, or those of the session in which its daemon was started.
    events_file: the file for `started`, `exited` and `failed` events, one JSON object per line
    """
    number = int(os.environ["OMPI_COMM_WORLD_RANK"])
    with open(ranks, encoding="utf-8") as file:
        programs = json.load(file)
    world_size = int(os.environ["OMPI_COMM_WORLD_SIZE"])
    if world_size != len(programs):
        # Such as an mpirun that ignores the hosts: each instance would train alone.
        reason = f"mpirun started a world of {world_size} ranks; the step was declared with {len(programs)}"
        _write_event(events_file, event="failed", rank=number, reason=reason, time=time.time())
        os._exit(1)
    program = programs[number]
    from_mpirun = {name: value for name, value in os.environ.items() if name.startswith(FROM_MPIRUN)}
    inherited = os.environ if program.pop("inherits", False) else {}
    program["environment"] = {**inherited, **program["environment"], **from_mpirun}
    rank = _start(program)
    for forwarded in (signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
        signal.signal(forwarded, lambda number, _: os.killpg(os.getpgid(rank.pid), number))
    _write_event(events_file, event="started", rank=number, pid=rank.pid, time=time.time())
    end = rank.wait()
    _write_event(events_file, event="exited", rank=number, **end, time=time.time())
    code = end["code"]
    if code < 0:
        # mpirun must see the same signal.
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


class _Rank(Protocol):
    """A rank that runs. pid: its process id"""

    pid: int

    def wait(self) -> dict[str, Any]:
        """Wait for its end. Return its `code`, `cpu` and `memory`, as in the agent's events."""


class _NewProcess:
    def __init__(self, program: dict[str, Any]) -> None:
        self.pid = spawn.start(program)

    def wait(self) -> dict[str, Any]:
        _, status, usage = os.wait4(self.pid, 0)
        return {"code": os.waitstatus_to_exitcode(status), "cpu": cpu_seconds(usage), "memory": peak_memory(usage)}


class _ForkedProcess:
    """A rank that the server of the instance forks."""

    def __init__(self, program: dict[str, Any]) -> None:
        """Raise OSError if there is no server."""
        folder, name = os.path.split(program.pop("socket"))
        os.chdir(folder)  # the path of a socket may have 108 characters; a run's folder has more
        server = socket.socket(socket.AF_UNIX)
        server.connect(name)
        server.sendall(json.dumps(program).encode() + b"\n")
        self._answers = server.makefile("rb")
        self.pid: int = json.loads(self._answers.readline() or b'{"pid": 0}')["pid"]
        if not self.pid:
            raise ConnectionResetError(f"the server at {name} has ended")

    def wait(self) -> dict[str, Any]:
        answer = self._answers.readline()
        # A server that was killed does not answer. Its ranks are killed too.
        killed = {"code": -int(signal.SIGKILL), "cpu": None, "memory": None}
        return json.loads(answer) if answer else killed


def _start(program: dict[str, Any]) -> _Rank:
    if program.get("python") is not None and "socket" in program:
        try:
            return _ForkedProcess(program)
        except OSError:  # no starter could fork this instance's agent
            return _NewProcess(program)
    return _NewProcess(program)


def _write_event(events_file: str, **event: object) -> None:
    """Append a line. A line shorter than PIPE_BUF is written atomically, although other processes append too."""
    descriptor = os.open(events_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, (json.dumps(event, separators=(",", ":")) + "\n").encode())
    os.close(descriptor)
