"""Launchers: how the ranks of each distribution type are started. A new launcher is one module and one table row."""

from __future__ import annotations

from allranks.local.launchers import mpi, per_process, ray, tensorflow
from allranks.local.launchers.launching import Assignment, Launcher, Launching

LAUNCHERS: dict[str, Launcher] = {
    "none": per_process,
    "pytorch": per_process,
    "mpi": mpi,
    "tensorflow": tensorflow,
    "ray": ray,
}
"""By distribution type."""

__all__ = ["LAUNCHERS", "Assignment", "Launcher", "Launching"]
