"""What the steps of a job require of a workspace."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from allranks.azure.hardware_needs import NO_NEEDS, HardwareNeeds
from allranks.azure.job_steps import JobStep, job_steps
from allranks.contract.layout import Layout
from allranks.sdk import internals


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
    hardware: HardwareNeeds = NO_NEEDS


def requirements(
    job: Any,
    layouts: Mapping[str, Layout],
    per_process: frozenset[str],
    hardware: Mapping[str, HardwareNeeds] = MappingProxyType({}),
) -> list[Requirements]:
    """Return what each step of the SDK's job requires, also those of nested pipelines. A command job is its only step.

    layouts:     by step, if known
    per_process: the steps whose ranks are all started by the platform
    hardware:    by step, if known
    """
    from azure.ai.ml.entities import PipelineJob

    if not isinstance(job, PipelineJob) and len(layouts) == 1:
        (layout,) = layouts.values()
        layouts, per_process = {"": layout}, frozenset({""} if per_process else ())
        hardware = {"": next(iter(hardware.values()), NO_NEEDS)}
    return [
        replace(
            _of_step(step, layouts.get(step.path), step.path in per_process),
            hardware=hardware.get(step.path, NO_NEEDS),
        )
        for step in job_steps(job)
    ]


def _of_step(step: JobStep, layout: Layout | None, per_process: bool) -> Requirements:
    node, component = step.node, internals.component(step.node)
    environment = vars(node).get("environment") or getattr(component, "environment", None)
    resources = internals.resources(node) or getattr(component, "resources", None)
    size = getattr(resources, "instance_type", None) or ""
    return Requirements(
        where=f"step {step.path}" if step.path else "the job",
        compute=step.compute,
        size=size if isinstance(size, str) else "",
        instances=layout.instance_count if layout else 1,
        low_priority=_is_spot(node),
        processes=layout.process_count_per_instance if layout and per_process else None,
        environment=environment if isinstance(environment, str) else "",
        component=component if isinstance(component, str) else "",
    )


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
