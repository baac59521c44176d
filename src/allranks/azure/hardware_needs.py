"""What a step needs of the GPUs and the network of its size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date

from allranks.errors import Problem
from allranks.hardware import traps
from allranks.hardware.sizes import Size
from allranks.plan.cuda_version import cuda_version
from allranks.plan.graph import Step


@dataclass(frozen=True)
class HardwareNeeds:
    """What a step needs.

    cuda:       the CUDA version of its environment; "" if unknown or none
    infiniband: whether its environment variables ask for InfiniBand
    """

    cuda: str = ""
    infiniband: bool = False


NO_NEEDS = HardwareNeeds()


def hardware_needs(step: Step) -> HardwareNeeds:
    """Return what a step of a plan needs."""
    variables = {name: str(value) for name, value in step.environment_variables.items()}
    return HardwareNeeds(cuda_version(step.environment), traps.asks_for_infiniband(variables))


def problems(where: str, size: Size, needs: HardwareNeeds) -> Iterator[Problem]:
    """Yield why the step cannot run on the size. where: the step, as named in messages"""
    found = (*traps.of_cuda(size, needs.cuda), *traps.of_infiniband(size, date.today(), wanted=needs.infiniband))
    for problem in found:
        yield replace(problem, where=f"{where}, key {problem.where}")
