"""Wrapper that mpirun starts for each rank: start the rank with its variables, folder and log, and report its start and
exit to the engine."""

import contextlib
import json
import os
import signal
import time

from allranks.local.instances import processes
from allranks.local.instances.sampling import cpu_seconds, peak_memory

FROM_MPIRUN = ("OMPI_", "PMIX_", "OPAL_", "ORTE_")
"""Prefixes of the variables in which mpirun passes a rank its number and its connection."""


def main(ranks: str, events_file: str) -> None:
    """Run one rank, and exit with its exit code or signal.

    ranks:       a JSON file with the fields of `supervisor.Program` for each rank
    events_file: the file for `started`, `exited` and `failed` events, one JSON object per line
    """
    number = int(os.environ["OMPI_COMM_WORLD_RANK"])
    events = os.open(events_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with open(ranks, encoding="utf-8") as file:
        programs = json.load(file)
    world_size = int(os.environ["OMPI_COMM_WORLD_SIZE"])
    if world_size != len(programs):
        # Such as an mpirun that ignores the hosts: each instance would train on its own.
        reason = f"mpirun started a world of {world_size} ranks; the step was declared with {len(programs)}"
        processes.write_event(events, event="failed", rank=number, reason=reason, time=time.time())
        os._exit(1)
    program = programs[number]
    from_mpirun = {name: value for name, value in os.environ.items() if name.startswith(FROM_MPIRUN)}
    program["environment"] = {**program["environment"], **from_mpirun}
    pid = processes.start(program)

    def forward(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):  # the rank has just ended
            os.killpg(os.getpgid(pid), number)

    for forwarded in (signal.SIGTERM, signal.SIGINT, signal.SIGCONT):
        signal.signal(forwarded, forward)
    processes.write_event(events, event="started", rank=number, pid=pid, time=time.time())
    _, status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    end = {"code": code, "cpu": cpu_seconds(usage), "memory": peak_memory(usage)}
    processes.write_event(events, event="exited", rank=number, **end, time=time.time())
    if code < 0:
        # mpirun must see the same signal.
        signal.signal(-code, signal.SIG_DFL) if -code not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), -code)
    os._exit(code if code >= 0 else 128 - code)
