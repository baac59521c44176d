"""The launcher of each distribution type."""

from allranks.contract.tensorflow import TensorFlow
from allranks.local.launchers import mpi, ray
from allranks.local.launchers.launching import Assignment, LaunchedPrograms, Launcher

LINGER = 30.0
"""Seconds for TensorFlow's other workers to exit after the chief, if there are no parameter servers."""


def launch_every_rank(assignment: Assignment) -> LaunchedPrograms:
    """Start every rank, as the platform does. The step ends when the last one exits."""
    return LaunchedPrograms(assignment.by_instance(), frozenset(rank.name for rank in assignment.ranks))


def launch_tasks(assignment: Assignment) -> LaunchedPrograms:
    """Start every task of TensorFlow. The step ends with the chief: parameter servers, and workers that serve a chief,
    wait for requests and do not exit."""
    settings = assignment.launch.distribution
    assert isinstance(settings, TensorFlow)
    linger = 0.0 if settings.parameter_server_count else LINGER
    return LaunchedPrograms(assignment.by_instance(), frozenset({assignment.ranks[0].name}), linger)


LAUNCHERS: dict[str, Launcher] = {
    "none": Launcher(launch_every_rank),
    "pytorch": Launcher(launch_every_rank),
    "mpi": Launcher(mpi.launch, mpi.MPIRUN, "Open MPI 4.1", 'pip install "allranks[mpi]", or your system\'s Open MPI'),
    "tensorflow": Launcher(launch_tasks),
    "ray": Launcher(ray.launch, ray.RAY, "Ray 2.50 or later", 'pip install "allranks[ray]"'),
}
"""By distribution type. A new launcher is one module and one row here."""
