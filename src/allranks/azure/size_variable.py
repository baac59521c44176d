"""Tell the ranks of each step the Azure size that it runs on, by a variable of the step."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any

from allranks.azure.compute_id import ComputeId
from allranks.azure.errors import service_errors
from allranks.azure.job_steps import job_steps
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
    for step in job_steps(job):
        if (set_in := _SETTERS.get(step.kind)) is None:
            continue
        compute = ComputeId.parse(step.compute)
        name = clusters.get(compute.name.lower(), "") if compute.is_cluster else _own_size(step.node)
        if (size := sizes.known(name) if name else None) is not None:
            set_in(step.node, size.name)


def _set_in_step(step: Any, size: str) -> None:
    given = dict(getattr(step, "environment_variables", None) or {})
    declared = getattr(internals.component(step), "environment_variables", None) or {}
    if SIZE not in {**declared, **given}:
        step.environment_variables = {**given, SIZE: size}


def set_in_sweep(step: Any, size: str) -> None:
    """Export the variable in the trial's command: the SDK sends no variables of a sweep within a pipeline."""
    trial = step.trial
    command = getattr(trial, "command", None)
    declared = getattr(trial, "environment_variables", None) or {}
    if command and SIZE not in command and SIZE not in declared:
        own = copy(trial)  # other steps may have the same component, on another size
        own.command = f"export {SIZE}={size} && {command}"
        internals.replace_component(step, own)


_SETTERS = {"Command": _set_in_step, "CommandJob": _set_in_step, "Parallel": _set_in_step, "Sweep": set_in_sweep}
"""The functions that set the variable, by the class of the step. Other steps, such as Spark, do not read it."""


def _own_size(step: Any) -> str:
    resources = internals.resources(step) or getattr(step, "resources", None)
    resources = resources or getattr(internals.component(step), "resources", None)
    size = getattr(resources, "instance_type", None)
    return size if isinstance(size, str) else ""
