"""Every distribution type, and every launcher that is read: the tables that a new one is added to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from allranks.contract import mpi, pytorch, ray, single, slurm, tensorflow, torchrun
from allranks.contract.mpi import Mpi
from allranks.contract.process import Process
from allranks.contract.pytorch import PyTorch
from allranks.contract.rank_env import RankEnv
from allranks.contract.ray import Ray
from allranks.contract.single import Single
from allranks.contract.tensorflow import TensorFlow
from allranks.errors import Problem

if TYPE_CHECKING:
    from allranks.contract.launch import Launch

Distribution: TypeAlias = PyTorch | Mpi | TensorFlow | Ray | Single
"""The settings of a job's distribution."""


class Module(Protocol):
    """What the module of a distribution type offers. `settings` is an instance of its own dataclass."""

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
    """A distribution type: the dataclass of its settings, and the module that knows how it behaves."""

    settings: type[Distribution]
    module: Module


DISTRIBUTIONS: Mapping[str, DistributionType] = MappingProxyType(
    {
        Mpi.type: DistributionType(Mpi, mpi),
        TensorFlow.type: DistributionType(TensorFlow, tensorflow),
        PyTorch.type: DistributionType(PyTorch, pytorch),
        Ray.type: DistributionType(Ray, ray),
        Single.type: DistributionType(Single, single),
    }
)
"""Type name -> the type, in the order in which a process's variables are tried."""

LAUNCHERS: tuple[Callable[[Mapping[str, str]], RankEnv | None], ...] = (
    torchrun.read,
    *(kind.module.read for name, kind in DISTRIBUTIONS.items() if name != Single.type),
    slurm.read,
    single.read,
)
"""How each launcher reads its variables; the first that finds its own is the one that started the process.

Launchers nest, and an outer one's variables stay visible to what the inner one starts. So the order is: what can only
be innermost comes first, and names that an outer launch also sets come late.
- torchrun sets TORCHELASTIC_RUN_ID, and runs inside PyTorch, MPI and Slurm launches of one process an instance.
- mpirun sets OMPI_* or PMI_* in every process, and runs inside PyTorch, TensorFlow and Slurm launches. What could run
  inside it and is not torchrun sets plain RANK to the same number, or is left from the launch around it.
- TF_CONFIG is written for one process; RANK and WORLD_SIZE are plain names, which an outer launch may have left.
- Ray's cluster spans the launch, and what Ray Train starts in it has RANK and WORLD_SIZE of its own.
- Slurm is a cluster's outermost layer; a script under srun that starts ranks by hand sets RANK for them.
"""


def problems(distribution: Distribution, instance_count: int) -> tuple[Problem, ...]:
    """What cannot work of these settings on so many instances: `where` is a key such as distribution.worker_count."""
    return DISTRIBUTIONS[distribution.type].module.problems(distribution, instance_count)


def processes_per_instance(distribution: Distribution) -> int:
    """Return the process count per instance of a distribution that has one, and 1 for the others."""
    return getattr(distribution, "process_count_per_instance", None) or 1
