"""The table of distribution types. A new type is one module and one row."""

from collections.abc import Mapping

from allranks.contract.launch import Distribution
from allranks.contract.mpi import Mpi
from allranks.contract.pytorch import PyTorch
from allranks.contract.ray import Ray
from allranks.contract.single import Single
from allranks.contract.tensorflow import TensorFlow

DISTRIBUTIONS: Mapping[str, type[Distribution]] = {kind.type: kind for kind in (Mpi, TensorFlow, PyTorch, Ray, Single)}
"""Type name -> the class of its settings."""


def processes_per_instance(distribution: Distribution) -> int:
    """Return the process count per instance of a distribution; 1 if it has no such setting."""
    return getattr(distribution, "process_count_per_instance", None) or 1
