"""The launcher of each distribution type."""

from __future__ import annotations

from allranks.local.launchers import mpi, per_process, ray, tensorflow
from allranks.local.launchers.launching import Launcher

LAUNCHERS: dict[str, Launcher] = {
    "none": per_process,
    "pytorch": per_process,
    "mpi": mpi,
    "tensorflow": tensorflow,
    "ray": ray,
}
"""By distribution type. A new launcher is one module and one row here."""
