"""Warn of problems that a step would have on the Azure size that it names.

The step can run on this machine, so these are warnings. Sizes that are not in the table, such as those without GPUs,
are skipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date

from allranks.checks.plan.mistakes.launchers import launcher_of
from allranks.checks.plan.rule import Level, Rule
from allranks.checks.plan.scope import Scope
from allranks.contract.requirements import LAUNCH, PER_NODE
from allranks.errors import Problem
from allranks.hardware import shared_memory, sizes, traps
from allranks.plan.cuda_version import cuda_version
from allranks.plan.graph import Step

SIZE = Rule(
    "size",
    Level.WARNING,
    "The size that a step names is retired, has no InfiniBand that the job asks for, or needs another image.",
    "[sizes.md](sizes.md), with the sources of each size",
    "choose another size: allranks sizes",
)
PROCESSES = Rule(
    "processes-per-gpu",
    Level.WARNING,
    "The processes of an instance are not as many as the GPUs of its size; one process on eight GPUs leaves seven "
    "idle.",
    "MicrosoftDocs/azure-docs#111307; Azure/azureml-examples#675; Azure/azure-sdk-for-python#25215 and #28778",
    "set process_count_per_instance to the number of GPUs",
)
SHARED_MEMORY = Rule(
    "shared-memory",
    Level.WARNING,
    "/dev/shm is too small for NCCL or the data loaders of the ranks of an instance.",
    'NVIDIA, NCCL user guide, "Runtime and MPI issues"; PyTorch\'s README: --shm-size',
    "set resources.shm_size",
)


def of_step(scope: Scope, step: Step, today: date) -> Iterator[Problem]:
    """Yield the problems of each size that the step names."""
    return (replace(problem, where=scope.key(step, problem.where)) for problem in by_key(step, today))


def by_key(step: Step, today: date) -> Iterator[Problem]:
    """Yield the problems of each size that the step names. The place of each is its key alone."""
    # A step may name several sizes: "A or B".
    for name in filter(None, step.instance_type.split(" or ")):
        size = sizes.known(name)
        for warning in () if size is None else _of_size(step, size, today):
            yield replace(warning, rule=warning.rule or SIZE.code)


def _of_size(step: Step, size: sizes.Size, today: date) -> Iterator[Problem]:
    wants_infiniband = traps.asks_for_infiniband(
        {name: str(value) for name, value in step.environment_variables.items()}
    )
    yield from traps.of_size(size, today, wants_infiniband=wants_infiniband)
    yield from traps.of_cuda(size, cuda_version(step.environment))
    # Only if the platform starts every rank. A launcher inside the step chooses its own number of processes.
    processes = getattr(step.distribution, "process_count_per_instance", None)
    if processes is not None and step.tags.get(LAUNCH) != PER_NODE:
        if processes > 1 or not launcher_of(step.command):
            yield from PROCESSES.mark(traps.of_processes(size, processes))
        too_small = shared_memory.problem(step.shm_size, processes, gpus=True)
        if too_small is not None:
            yield from SHARED_MEMORY.mark([too_small])
