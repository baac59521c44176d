"""A script under every way to start ranks: the platform's processes, torchrun, mpirun."""

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from component_processes import Ended, clean, folder_of, run

from allranks.contract import produce, report
from allranks.contract.launch import Distribution, Launch
from free_ports import free_port

BIN = Path(sys.executable).parent
MPIRUN = BIN / "mpirun"


def environment(folder: Path, code: Sequence[str]) -> dict[str, str]:
    """What every process of a test is given: code of these components, one thread, a report."""
    told = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "NODE_RANK", "MASTER_", "GLOO_", "NCCL_", "OMPI_", "ACCELERATE_")
    kept = {name: value for name, value in clean().items() if not name.startswith(told)}
    path = os.pathsep.join(str(folder_of(component)) for component in code)
    return kept | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", report.VARIABLE: str(folder / "report")}


def by_platform(
    distribution: Distribution,
    instance_count: int,
    command: Sequence[str],
    folder: Path,
    variables: Mapping[str, str],
    missing: int | None = None,
) -> Ended:
    """The command in every process that the platform starts, on instances of this machine's loopback.

    missing: an instance that never starts
    """
    job = Launch(
        distribution,
        tuple(f"127.0.0.{number + 2}" for number in range(instance_count)),
        tuple(f"instance-{number}" for number in range(instance_count)),
        free_port(),
    )
    processes = list(produce.processes(job))
    if distribution.type == "tensorflow":  # its servers listen at every address
        job = replace(job, ports=tuple(free_port() for _ in processes))
    started = [process for process in processes if process.instance_rank != missing]
    places = [produce.environment(job, process) for process in started]
    return run([list(command)] * len(places), [{**variables, **place} for place in places], folder)


def by_mpirun(
    count: int, command: Sequence[str], folder: Path, variables: Mapping[str, str], prefix: str = sys.prefix
) -> Ended:
    """The command in so many processes of the real mpirun's, as Azure ML does it on a single instance.

    prefix: of the virtual environment whose Open MPI it is
    """
    given = {"OPAL_PREFIX": prefix, "MASTER_PORT": str(free_port()), "AZ_BATCHAI_MPI_MASTER_NODE": "127.0.0.1"}
    options = ["--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "btl", "self,tcp"]
    options += ["--mca", "btl_tcp_if_include", "lo", "--mca", "oob_tcp_if_include", "lo", "-n", str(count)]
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as short:  # Open MPI's sockets need a short path
        options += ["--mca", "orte_tmpdir_base", short]
        return run([[f"{prefix}/bin/mpirun", *options, *command]], [{**variables, **given}], folder)
