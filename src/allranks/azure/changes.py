"""Change a job for a submission: its compute, its sizes, its names, and the variable with the size of each step."""

import re
from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from allranks.azure.errors import service_errors
from allranks.azure.requirements import SERVERLESS, ComputeId, job_steps
from allranks.contract.variables import SIZE
from allranks.errors import InputError, Problem, raise_any
from allranks.hardware import sizes
from allranks.sdk import internals

_SIZE = re.compile(r"(?P<tier>Standard|Basic)_(?P<rest>[A-Z]{1,4}\d+[a-z\d-]*(?:_[a-z\d]+)*)", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_][\w-]*")


@dataclass(frozen=True)
class Changes:
    """The changes. An empty value leaves the job unchanged.

    compute: a cluster for the steps that do not name one
    size:    run serverless: the size of every step; sizes: of steps by name
    """

    compute: str = ""
    size: str = ""
    sizes: Mapping[str, str] = field(default_factory=dict)
    experiment: str = ""
    display_name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


def parse_sizes(given: list[str]) -> tuple[str, dict[str, str]]:
    """Return the size of every step, and sizes by step, from ``SIZE`` and ``STEP=SIZE``. Raise InputError."""
    by_step: dict[str, str] = {}
    for text in given:
        step, equals, size = text.rpartition("=")
        if equals and not _NAME.fullmatch(step):
            raise InputError(Problem(f"--size {text}", f"{step!r} is not a step's name", "SIZE or STEP=SIZE"))
        if step in by_step:
            whose = f"step {step}" if step else "every step"
            raise InputError(Problem(f"--size {text}", f"the size of {whose} is given twice", "", "remove one of them"))
        by_step[step] = size_name(size, f"--size {text}")
    return by_step.pop("", ""), by_step


def size_name(text: str, where: str) -> str:
    """Return the size as Azure writes it, ignoring case. Raise InputError, with similar names, if it is not a size.

    A size that is missing in the table of `allranks doctor --sizes` is returned too: the workspace checks whether its
    region has it.
    """
    known = sizes.known(text)
    match = _SIZE.fullmatch(text.strip())
    if known is None and match is not None:
        return f"{match['tier'].capitalize()}_{match['rest']}"
    return (known or sizes.find(text, where)).name


def unchecked_sizes(changes: Changes) -> list[str]:
    """Return the sizes with GPUs (Azure's N series) that are missing in `allranks doctor --sizes`."""
    given = dict.fromkeys([changes.size, *changes.sizes.values()])
    return [size for size in given if sizes.known(size) is None and re.match("[a-z]+_N", size, re.IGNORECASE)]


def apply(job: Any, changes: Changes) -> None:
    """Change the SDK's job. Raise InputError for a step that the job does not have, or that has no size."""
    if changes.experiment:
        job.experiment_name = changes.experiment
    if changes.display_name:
        job.display_name = changes.display_name
    if changes.tags:
        job.tags = {**(job.tags or {}), **changes.tags}
    if changes.compute:
        set_compute(job, changes.compute)
    if changes.size or changes.sizes:
        _resize(job, changes)


def set_compute(job: Any, compute: str) -> None:
    """Set the cluster for the steps of the SDK's job that do not name one."""
    if not isinstance(job, internals.PipelineJob):
        job.compute = compute
        return
    job.settings.default_compute = compute
    if job.compute:
        job.compute = compute


def _resize(job: Any, changes: Changes) -> None:
    if not isinstance(job, internals.PipelineJob):
        if changes.sizes:
            step = next(iter(changes.sizes))
            raise InputError(Problem(f"--size {step}=...", "the job has no steps", "--size SIZE"))
        _set_size(job, changes.size)
        set_compute(job, SERVERLESS)
        return
    nodes = dict(job.jobs.items())
    unknown, expected = [step for step in changes.sizes if step not in nodes], f"one of: {', '.join(nodes)}"
    raise_any(Problem(f"--size {step}=...", "there is no such step", expected) for step in unknown)
    set_compute(job, SERVERLESS)
    for name, node in nodes.items():
        size = changes.sizes.get(name, changes.size)
        if not size or type(node).__name__ not in ("Command", "Parallel", "Sweep"):
            continue
        # The step's own compute would take precedence.
        if node.compute:
            node.compute = None
        _set_size(node, size)


def _set_size(node: Any, size: str) -> None:
    """Set new resources, because steps initially share those of their component."""
    old = node.resources or getattr(node.component, "resources", None)
    names = ("instance_count", "shm_size", "docker_args", "properties", "locations", "max_instance_count")
    settings = {name: getattr(old, name) for name in names if getattr(old, name, None) is not None}
    node.resources = internals.JobResourceConfiguration(instance_type=size, **settings)


def cluster_sizes(client: Any) -> dict[str, str]:
    """Return the sizes of the workspace's computes by their names in lower case. Raise AzureError."""
    with service_errors("listing the computes of the workspace"):
        computes = list(client.compute.list())
    return {str(each.name).lower(): str(each.size) for each in computes if getattr(each, "size", None)}


def set_sizes(job: Any, clusters: Mapping[str, str]) -> None:
    """Set ALLRANKS_SIZE in each step of the SDK's job whose size is known, including those of nested pipelines.

    clusters: from `cluster_sizes`; empty if no cluster's size is known

    A step that sets the variable keeps its value. Sizes without GPUs need no network settings, so they are not set. The
    trials of a registered component recognise the hardware, because a sweep in a pipeline has no environment variables.
    """
    for step in job_steps(job):
        if (set_in := _SETTERS.get(step.kind)) is None:
            continue
        compute = ComputeId.parse(step.compute)
        name = clusters.get(compute.name.lower(), "") if compute.is_cluster else step.size
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
