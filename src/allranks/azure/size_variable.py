"""Tell the ranks of each step the Azure size that it runs on, by a variable of the step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from typing import Any

from allranks.azure.compute_id import ComputeId
from allranks.azure.errors import service_errors
from allranks.contract.own_variables import SIZE
from allranks.hardware import sizes
from allranks.sdk import internals


def cluster_sizes(client: Any) -> dict[str, str]:
    """Return the sizes of the workspace's computes by their names in lower case. Raise AzureError."""
    with service_errors("looking at the computes of the workspace"):
        return {
            str(compute.name).lower(): str(size)
            for compute in client.compute.list()
            if (size := getattr(compute, "size", None))
        }


def set_sizes(job: Any, clusters: Mapping[str, str]) -> None:
    """Set ALLRANKS_SIZE in each step of the SDK's job whose size is known, also in nested pipelines.

    clusters: from `cluster_sizes`; empty if no cluster's size is known

    A step that sets the variable itself keeps it. Sizes without GPUs need no network settings, and get none. The trials
    of a registered component recognise the hardware: a sweep in a pipeline has no environment variables of its own.
    """
    for step, compute in _steps(job, ComputeId("")):
        name = clusters.get(compute.name.lower(), "") if compute.is_cluster else _own_size(step)
        if (size := sizes.known(name) if name else None) is not None:
            (_set_in_sweep if type(step).__name__ == "Sweep" else _set_in_step)(step, size.name)


def _set_in_step(step: Any, size: str) -> None:
    given = dict(getattr(step, "environment_variables", None) or {})
    declared = getattr(internals.component(step), "environment_variables", None) or {}
    if SIZE not in {**declared, **given}:
        step.environment_variables = {**given, SIZE: size}


def _set_in_sweep(step: Any, size: str) -> None:
    """Export the variable in the trial's command: the SDK sends no variables of a sweep within a pipeline."""
    trial = step.trial
    command = getattr(trial, "command", None)
    declared = getattr(trial, "environment_variables", None) or {}
    if command and SIZE not in command and SIZE not in declared:
        own = copy(trial)  # other steps may have the same component, on another size
        own.command = f"export {SIZE}={size} && {command}"
        internals.replace_component(step, own)


def _steps(job: Any, default: ComputeId) -> Iterator[tuple[Any, ComputeId]]:
    """Yield each step with its compute; a command job is its only step."""
    nodes = _nodes(job)
    if nodes is None:
        kind = type(job).__name__
        if kind in ("Command", "CommandJob", "Parallel", "Sweep"):
            yield job, _compute(vars(job).get("compute"), default)
        return
    settings = getattr(job, "settings", None)
    compute = _compute(getattr(job, "compute", None) or getattr(settings, "default_compute", None), default)
    for node in nodes:
        yield from _steps(node, compute)


def _nodes(job: Any) -> Iterable[Any] | None:
    """Return the nodes of a pipeline job or of a node that is a pipeline component on this machine; None for a step."""
    from azure.ai.ml.entities import PipelineJob

    if isinstance(job, PipelineJob):
        return list(job.jobs.values())
    inner = getattr(internals.component(job), "jobs", None)
    return list(inner.values()) if type(job).__name__ == "Pipeline" and isinstance(inner, dict) else None


def _compute(compute: Any, default: ComputeId) -> ComputeId:
    return ComputeId.parse(compute) if compute else default


def _own_size(step: Any) -> str:
    resources = internals.resources(step) or getattr(step, "resources", None)
    resources = resources or getattr(internals.component(step), "resources", None)
    size = getattr(resources, "instance_type", None)
    return size if isinstance(size, str) else ""
