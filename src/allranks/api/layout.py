"""Set the layout of a step: its instances, the processes of each, and the Azure size that they run on."""

from __future__ import annotations

import copy
import dataclasses
import sys
from collections.abc import Iterator
from typing import Any, TypeVar

from allranks.azure.changes import set_in_sweep
from allranks.checks.plan.launchers import launcher_of
from allranks.contract import produce
from allranks.contract.distributions import DISTRIBUTIONS
from allranks.contract.requirements import LAUNCH, PER_NODE
from allranks.contract.variables import SIZE
from allranks.errors import InputError, Problem
from allranks.hardware import sizes, traps
from allranks.sdk import internals, user_code

_Node = TypeVar("_Node")
_INSTANCES, _PROCESSES = "instance_count", "process_count_per_instance"
_WITHOUT_DISTRIBUTION = "set one, such as: step.distribution = PyTorchDistribution()"


# Over 60 lines: a third of it describes the arguments.
def layout(
    node: _Node, instance_count: Any = None, process_count_per_instance: Any = None, *, size: str | None = None
) -> _Node:
    """Set the layout of a step, and return the step::

        train = allranks.layout(train_image_classifier(data=images), instance_count=2, process_count_per_instance=8)

    node: azure-ai-ml's node of a component or of `command`, or a sweep, whose trials get the layout
    instance_count: a number, or an input of the pipeline; default: as before
    process_count_per_instance: a number, or an input of the pipeline; default: as before, or the GPUs of the size
    size: an Azure size such as ND96asr_v4. It sets the instance type, a process for each GPU, half of the memory as
        /dev/shm, and ALLRANKS_SIZE, from which the runtime selects the network settings

    The step gets `resources` and `distribution` of its own: azure-ai-ml shares them between all steps of a component.
    The distribution keeps its type and its other settings. If TensorFlow has a worker on each instance, it still does.

    Raise InputError, with the line of the call, for a layout that cannot be launched, such as several processes for a
    command whose launcher starts them.
    """
    frame = sys._getframe(1)
    where = f"{user_code.line(frame.f_code.co_filename, frame.f_lineno)}, layout"
    if not isinstance(node, (internals.Command, internals.Parallel, internals.Sweep)):
        found = f"a value of type {type(node).__name__}"
        raise InputError(Problem(where, found, "a step that runs a command, or a sweep of one"))
    hardware = None if size is None else sizes.find(size, f"{where}, size")
    step: Any = node.trial if isinstance(node, internals.Sweep) else node
    component = internals.component(step, step)
    resources: Any = copy.copy(step.resources or getattr(component, "resources", None))
    resources = resources or internals.JobResourceConfiguration()
    own = None if isinstance(step, internals.Parallel) else step.distribution
    distribution: Any = copy.copy(own or getattr(component, "distribution", None))
    launcher = "the parallel step" if isinstance(step, internals.Parallel) else _launcher(component)

    has_processes = hasattr(distribution, _PROCESSES)
    if hardware is not None:
        resources.instance_type = hardware.name
        resources.shm_size = f"{(hardware.host_memory_gib or 4) // 2}g"  # 2g is Azure ML's default
        if process_count_per_instance is None and has_processes and not launcher:
            process_count_per_instance = hardware.processes
    counts = {_INSTANCES: instance_count, _PROCESSES: process_count_per_instance}
    # The distribution of a registered component is unknown here.
    isolated = distribution is None and not launcher and not isinstance(component, str)
    if problems := list(_impossible(counts, distribution, launcher, hardware, isolated)):
        raise InputError.of(dataclasses.replace(each, where=f"{where}, {each.where}") for each in problems)

    if instance_count is not None:
        if type(resources.instance_count) is int and _workers(distribution) == resources.instance_count:
            distribution.worker_count = instance_count
        resources.instance_count = instance_count
    if process_count_per_instance is not None and has_processes:
        distribution.process_count_per_instance = process_count_per_instance
    for problem in _of_contract(distribution, resources.instance_count):
        raise InputError(dataclasses.replace(problem, where=f"{where}, {problem.where}"))

    step.resources = resources
    if not isinstance(step, internals.Parallel):
        step.distribution = distribution
    if hardware is not None and isinstance(node, internals.Sweep):
        set_in_sweep(node, hardware.name)
    elif hardware is not None:
        step.environment_variables = {**(step.environment_variables or {}), SIZE: hardware.name}
    return node


def _launcher(component: Any) -> str:
    """Return the program that starts the processes of an instance; "" if Azure ML does."""
    command = getattr(component, "command", None)
    own = "the component" if (getattr(component, "tags", None) or {}).get(LAUNCH) == PER_NODE else ""
    return own or launcher_of(command if isinstance(command, str) else "")


def _impossible(
    counts: dict[str, Any], distribution: Any, launcher: str, hardware: sizes.Size | None, isolated: bool
) -> Iterator[Problem]:
    """Yield the first problem of the arguments, by argument. The values of a pipeline's inputs are checked later.

    isolated: whether the processes of several instances would not find each other
    """
    for key, value in counts.items():
        is_number = isinstance(value, (int, float)) or (isinstance(value, str) and "${{" not in value)
        if is_number and (type(value) is not int or value < 1):
            yield Problem(key, repr(value), "a whole number of at least 1, or an input of the pipeline")
            return
    instances, processes = counts.values()
    number = processes if type(processes) is int else 0
    if launcher and number > 1:
        found = f"{number}; {launcher} starts the processes of an instance itself"
        yield Problem(_PROCESSES, found, "1", f"omit it, and pass the number to {launcher}")
    elif _several(processes) and distribution is None:
        yield Problem(_PROCESSES, "the step has no distribution", "", _WITHOUT_DISTRIBUTION)
    elif _several(processes) and not hasattr(distribution, _PROCESSES):
        found = f"the distribution {str(distribution.type).lower()} starts one process on each instance"
        yield Problem(_PROCESSES, found, "", f"omit it, and set {_INSTANCES}")
    elif _several(instances) and isolated:
        found = "the step has no distribution: each instance would run the same command"
        yield Problem(_INSTANCES, found, "", _WITHOUT_DISTRIBUTION)
    elif hardware is not None and number > hardware.gpus:
        yield from (dataclasses.replace(each, where=_PROCESSES) for each in traps.of_processes(hardware, number))


def _several(count: Any) -> bool:
    """Return whether a count is set to more than one, or to an input of the pipeline."""
    return count is not None and not (type(count) is int and count == 1)


def _workers(distribution: Any) -> int | None:
    """Return the number of TensorFlow's workers, if it is set to a number."""
    count = getattr(distribution, "worker_count", None)
    return count if type(count) is int else None


def _of_contract(distribution: Any, instance_count: Any) -> tuple[Problem, ...]:
    """Return the problems of a distribution whose numbers are known, such as more parameter servers than instances."""
    kind = DISTRIBUTIONS.get(str(getattr(distribution, "type", "none")).lower())
    if kind is None or type(instance_count) is not int:
        return ()
    values = {field.name: getattr(distribution, field.name, None) for field in dataclasses.fields(kind.settings)}
    return produce.problems(
        kind.settings(**{name: value for name, value in values.items() if type(value) is int}), instance_count
    )
