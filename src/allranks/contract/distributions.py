"""The table of distribution types. A new type is one module and one row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from allranks.contract import mpi, pytorch, ray, single, tensorflow
from allranks.contract.launch import Distribution, Launch, Process
from allranks.contract.rank_env import RankEnv
from allranks.errors import Problem


class Module(Protocol):
    """The interface of a distribution type's module. The first argument is an instance of its own dataclass."""

    @property
    def problems(self) -> Callable[[Any, int], tuple[Problem, ...]]: ...
    @property
    def processes(self) -> Callable[[Any, int], tuple[Process, ...]]: ...
    @property
    def environment(self) -> Callable[[Any, Launch, Process], dict[str, str]]: ...
    @property
    def read(self) -> Callable[[Mapping[str, str]], RankEnv | None]: ...


@dataclass(frozen=True)
class DistributionType:
    """A distribution type: the dataclass of its settings, and the module with its behaviour."""

    settings: type[Distribution]
    module: Module


DISTRIBUTIONS: Mapping[str, DistributionType] = {
    kind.settings.type: kind
    for kind in (
        DistributionType(mpi.Mpi, mpi),
        DistributionType(tensorflow.TensorFlow, tensorflow),
        DistributionType(pytorch.PyTorch, pytorch),
        DistributionType(ray.Ray, ray),
        DistributionType(single.Single, single),
    )
}
"""Type name -> the type, in the order in which a process's variables are read (see `READERS` of
`allranks.contract.world`)."""


def processes_per_instance(distribution: Distribution) -> int:
    """Return the process count per instance of a distribution; 1 if it has no such setting."""
    return getattr(distribution, "process_count_per_instance", None) or 1
