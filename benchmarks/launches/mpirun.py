"""Launches by plain mpirun: all ranks on this machine."""

import sys
from pathlib import Path

from allranks.contract.layout import Layout
from launches.torchrun import started

BIN = Path(sys.executable).parent


def mpirun(code: Path, file: str, layout: Layout, folder: Path) -> float:
    """Launch with mpirun. See `Launcher`."""
    program = [str(BIN / "mpirun"), "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
    # Without it, a rank that waits takes the core of the rank that it waits for.
    program += ["--mca", "mpi_yield_when_idle", "1", "--mca", "btl", "self,vader"]
    command = [*program, "-np", str(layout.world_size), sys.executable, str(code / file), str(folder)]
    return started([command], OPAL_PREFIX=str(BIN.parent))
