"""The launcher of each distribution type."""

from __future__ import annotations

from allranks.contract.mpi import Mpi
from allranks.local.launchers import mpi, mpi_ssh, per_process, ray, tensorflow
from allranks.local.launchers.launching import Launcher, MpiLauncher

LAUNCHERS: dict[str, Launcher] = {
    "none": per_process,
    "pytorch": per_process,
    "mpi": mpi,
    "tensorflow": tensorflow,
    "ray": ray,
}
"""By distribution type. A new launcher is one module and one row here."""

MPI: dict[str, MpiLauncher] = {"rsh": mpi, "ssh": mpi_ssh}
"""The launchers of mpi, by how mpirun reaches the instances: through the engine, or by ssh."""


def launcher(distribution: str, mpi_by: str) -> Launcher:
    """Return the launcher of a distribution type. mpi_by: a key of MPI"""
    return MPI[mpi_by] if distribution == Mpi.type else LAUNCHERS[distribution]
