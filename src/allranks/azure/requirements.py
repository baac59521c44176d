"""What the steps of a job require of a workspace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from allranks.azure.job_steps import JobStep, job_steps
from allranks.contract.distributions import processes_per_instance
from allranks.errors import Problem
from allranks.hardware import traps
from allranks.hardware.sizes import Size
from allranks.plan.cuda_version import cuda_version
from allranks.plan.graph import DoWhile, Graph, ParallelFor, Pipeline, Step
from allranks.plan.reader import alone
from allranks.sdk import internals


@dataclass(frozen=True)
class HardwareNeeds:
    """What a step needs.

    cuda:       the CUDA version of its environment; "" if unknown or none
    infiniband: whether its environment variables ask for InfiniBand
    """

    cuda: str = ""
    infiniband: bool = False


@dataclass(frozen=True)
class Requirements:
    """What one step requires.

    where:       the step, as named in messages
    compute:     of the step or of the job; "" if none is named
    size:        the size that the step names; "" if none
    instances:   the number of instances
    low_priority: whether it runs on low-priority (spot) instances
    processes:   ranks per instance if the platform starts every rank; else None
    environment: as the step names it: "azureml:pytorch:3"; "" if it is uploaded with the job
    component:   likewise
    hardware:    what it needs of the size's GPUs and network
    """

    where: str
    compute: str = ""
    size: str = ""
    instances: int = 1
    low_priority: bool = False
    processes: int | None = None
    environment: str = ""
    component: str = ""
    hardware: HardwareNeeds = HardwareNeeds()


def requirements(job: Any, graph: Graph) -> list[Requirements]:
    """Return what each step of the SDK's job requires, also those of nested pipelines. A command job is its only step.

    graph: of the job's plan. A step that it does not have, such as a sweep, is read by itself
    """
    from azure.ai.ml.entities import PipelineJob

    planned = dict(_by_path(graph))
    if not isinstance(job, PipelineJob) and len(planned) == 1:
        planned = {"": next(iter(planned.values()))}
    return [_of_step(step, planned.get(step.path) or alone.read_step(step.path, step.node)) for step in job_steps(job)]


def _by_path(graph: Graph, path: str = "") -> Iterator[tuple[str, Step]]:
    """Yield the steps of a graph with their paths in the SDK's job, which has the body of a loop beside the loop."""
    for node in graph.nodes:
        inner = node.body if isinstance(node, (DoWhile, ParallelFor)) else node
        if isinstance(inner, Step):
            yield f"{path}{inner.name}", inner
        elif isinstance(inner, Pipeline):
            yield from _by_path(inner.graph, f"{path}{inner.name}.")


def _of_step(step: JobStep, planned: Step | None) -> Requirements:
    node, component = step.node, internals.component(step.node)
    environment = vars(node).get("environment") or getattr(component, "environment", None)
    resources = internals.resources(node) or getattr(component, "resources", None)
    size = getattr(resources, "instance_type", None) or ""
    return Requirements(
        where=f"step {step.path}" if step.path else "the job",
        compute=step.compute,
        size=size if isinstance(size, str) else "",
        instances=max(planned.instance_count, 1) if planned else 1,
        low_priority=_is_spot(node),
        processes=_processes(planned),
        environment=environment if isinstance(environment, str) else "",
        component=component if isinstance(component, str) else "",
        hardware=_hardware_needs(planned) if planned else HardwareNeeds(),
    )


def _processes(planned: Step | None) -> int | None:
    """Return the ranks per instance if the platform starts every rank."""
    if planned is None or not hasattr(planned.distribution, "process_count_per_instance"):
        return None
    return max(processes_per_instance(planned.distribution), 1)


def _is_spot(node: Any) -> bool:
    # Any attribute of a node exists: only those of its class have a meaning.
    settings = node.queue_settings if hasattr(type(node), "queue_settings") else None
    tier = getattr(settings, "job_tier", None)
    return str(tier or "").lower() == "spot"


def without_compute(job: Any) -> tuple[str, ...]:
    """Return the paths of the steps for which neither they nor the SDK's pipeline job name a compute.

    The SDK refuses to submit them, even if they name a size. A command job without a compute has no such step.
    """
    from azure.ai.ml.entities import PipelineJob

    if not isinstance(job, PipelineJob) or job.compute or job.settings.default_compute:
        return ()
    kinds = ("Command", "Parallel", "Spark", "Sweep")
    return tuple(step.path for step in job_steps(job) if step.kind in kinds and not vars(step.node).get("compute"))


def _hardware_needs(step: Step) -> HardwareNeeds:
    """Return what a step of a plan needs."""
    variables = {name: str(value) for name, value in step.environment_variables.items()}
    return HardwareNeeds(cuda_version(step.environment), traps.asks_for_infiniband(variables))


def hardware_problems(where: str, size: Size, needs: HardwareNeeds) -> Iterator[Problem]:
    """Yield why the step cannot run on the size. where: the step, as named in messages"""
    found = (*traps.of_cuda(size, needs.cuda), *traps.of_infiniband(size, date.today(), wanted=needs.infiniband))
    for problem in found:
        yield replace(problem, where=f"{where}, key {problem.where}")
