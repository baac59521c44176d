"""Wrapper that mpirun starts for each rank: start the rank with its variables, folder and log, and report its start and
exit to the engine."""

from __future__ import annotations

import json
import os
import signal
import time

from allranks.local.instances.agent import spawn
from allranks.local.instances.agent.sampling import cpu_seconds, peak_memory

FROM_MPIRUN = ("OMPI_", "PMIX_", "OPAL_", "ORTE_")
"""Prefixes of the variables in which mpirun passes a rank its number and its connection."""


def main(ranks: str, events_file: str) -> None:
    """Run one rank, and exit with its exit code or signal.

    ranks:       a JSON file with arguments, environment, folder and log of each rank
    events_file: the file for `started` and `exited` events, one JSON object per line
    """
    number = int(os.environ["OMPI_COMM_WORLD_RANK"])
    with open(ranks, encoding="utf-8") as file:
        rank = json.load(file)[number]
    from_mpirun = {name: value for name, value in os.environ.items() if name.startswith(FROM_MPIRUN)}
    pid = spawn.start({**rank, "environment": rank["environment"] | from_mpirun})
    for forwarded in (signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
        signal.signal(forwarded, lambda number, _: os.killpg(os.getpgid(pid), number))
    _write_event(events_file, event="started", rank=number, pid=pid, time=time.time())
    _, status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    cpu, memory = cpu_seconds(usage), peak_memory(usage)
    _write_event(events_file, event="exited", rank=number, code=code, cpu=cpu, memory=memory, time=time.time())
    if code < 0:
        # mpirun must see the same signal.
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)


def _write_event(events_file: str, **event: object) -> None:
    """Append a line. A line shorter than PIPE_BUF is written atomically, although other processes append too."""
    descriptor = os.open(events_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, (json.dumps(event, separators=(",", ":")) + "\n").encode())
    os.close(descriptor)
