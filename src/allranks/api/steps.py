"""Change a step of a pipeline: set its layout, or let it start after other steps."""

import copy
import dataclasses
import sys
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from allranks.azure.changes import set_in_sweep
from allranks.checks.plan.launchers import launcher_of
from allranks.contract.distributions import DISTRIBUTIONS
from allranks.contract.requirements import LAUNCH, PER_NODE
from allranks.contract.variables import SIZE
from allranks.errors import InputError, Problem, raise_any
from allranks.hardware import sizes, traps
from allranks.plan.ports import PRIMITIVES, needed_nodes
from allranks.plan.reader.context import pipeline_output, value_of
from allranks.sdk import internals, user_code
from allranks.sdk.entity_ports import flat, plain

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
            process_count_per_instance = hardware.gpus
    counts = {_INSTANCES: instance_count, _PROCESSES: process_count_per_instance}
    # The distribution of a registered component is unknown here.
    isolated = distribution is None and not launcher and not isinstance(component, str)
    problems = _impossible(counts, distribution, launcher, hardware, isolated)
    raise_any(dataclasses.replace(each, where=f"{where}, {each.where}") for each in problems)

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
    """Yield the first problem of the arguments, by argument. Inputs of the pipeline are checked later.

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
    """Return whether a count is more than one, or an input of the pipeline."""
    return count is not None and not (type(count) is int and count == 1)


def _workers(distribution: Any) -> int | None:
    count = getattr(distribution, "worker_count", None)
    return count if type(count) is int else None


def _of_contract(distribution: Any, instance_count: Any) -> tuple[Problem, ...]:
    """Return the problems of a distribution with known numbers, such as more parameter servers than instances."""
    kind = DISTRIBUTIONS.get(str(getattr(distribution, "type", "none")).lower())
    if kind is None or type(instance_count) is not int:
        return ()
    values = {field.name: getattr(distribution, field.name, None) for field in dataclasses.fields(kind)}
    return kind(**{name: value for name, value in values.items() if type(value) is int}).problems(instance_count)


def after(node: _Node, *others: Any) -> _Node:
    """Let a step start after other steps have ended, although it reads nothing of them, and return the step::

        allranks.after(evaluate, prepare)

    node: azure-ai-ml's node of a component or of `command`, a sweep, a loop, or a pipeline component
    others: nodes of the same pipeline

    Azure ML orders steps only by their data. The step therefore gets an optional input, `after`, that its command does
    not name. It is bound to an output of the other step by reference: nothing is mounted or downloaded. A step without
    a data output gets one, `ended`. Both are declared in copies of the components. The step does not start if another
    step fails, and starts if it is skipped.

    Raise InputError, with the line of the call, for a value that is not a step of the same pipeline, for a cycle, and
    for a registered component that is not loaded, to which nothing can be added.
    """
    frame = sys._getframe(1)
    where = f"{user_code.line(frame.f_code.co_filename, frame.f_lineno)}, after"
    for problem in _problems(where, node, others):
        raise InputError(problem)
    for other in others:
        for port in _ends(other, where):
            _wait(_body(node), port, internals.port_type(port) or "uri_folder")
    return node


def _problems(where: str, node: Any, others: tuple[Any, ...]) -> Iterator[Problem]:
    built = internals.nodes_being_built()
    for each in (node, *others):
        body = _body(each)
        if not isinstance(body, internals.BaseNode) or (each is node and body.type == "data_transfer"):
            copies = isinstance(body, internals.BaseNode)
            found = "a data transfer, which copies every input" if copies else f"a value of {type(each).__name__}"
            fix = "name the steps of its blocks" if type(each).__name__ == "ConditionNode" else ""
            yield Problem(where, found, "a step that runs a component, a sweep, a loop or a pipeline component", fix)
        elif isinstance(internals.component(body), str) and (each is node or not body.outputs):
            found = f"the component {internals.component(body)} is not loaded, so that nothing can be added to it"
            yield Problem(where, found, "", "load it, with load_component(FILE) or ml_client.components.get(...)")
        elif built is not None and not any(each is one for one in built):
            yield Problem(where, f"{_name(each)} is a step of another pipeline", "steps of the same pipeline")
    if any(id(_body(node)) in _needed(_body(other)) for other in others):
        yield Problem(where, f"{_name(node)} would wait for itself", "steps that do not need it", "remove the call")


def _body(node: Any) -> Any:
    return node.body if isinstance(node, internals.LoopNode) else node


def _name(node: Any) -> str:
    """Return the name of a node for messages. azure-ai-ml names nodes only when their pipeline is complete."""
    component = internals.component(_body(node))
    return str(node.name or getattr(component, "name", component))


def _needed(node: Any) -> set[int]:
    """Return the identities of a node and of every node whose outputs it needs, directly or not."""
    found: set[int] = set()
    waiting = [node]
    while waiting:
        each = _body(waiting.pop())
        if each is not None and id(each) not in found:
            found.add(id(each))
            waiting += [internals.source(port) for _, port in flat(each.inputs)]
    return found


def _sources(node: Any) -> tuple[str, ...]:
    """Return the names of the nodes whose outputs a node of a complete pipeline reads."""
    return needed_nodes(value_of(_text(port)) for _, port in flat(node.inputs))


def _is_returned(node: Any) -> bool:
    """Return whether an output of a node of a complete pipeline is an output of the pipeline."""
    return any(pipeline_output(_text(port)) for port in node.outputs.values())


def _text(port: Any) -> str:
    data = internals.data(port)
    return str(data.path if isinstance(data, (internals.Input, internals.Output)) else plain(data))


def _ends(node: Any, where: str) -> Iterator[Any]:
    """Yield outputs of a node that exist when the node has ended."""
    outputs = (node if hasattr(type(node), "outputs") else node.body).outputs  # do_while has none of its own
    if steps := _steps(_body(node)):
        read = {name for step in steps.values() for name in _sources(step)}
        if hidden := [name for name, step in steps.items() if name not in read and not _is_returned(step)]:
            found = f"{_name(node)} returns no output of its step {hidden[0]}, which no other step of it reads"
            raise InputError(Problem(where, found, "a pipeline that returns one", f"return an output of {hidden[0]}"))
        yield from outputs.values()
        return
    data = [port for port in outputs.values() if internals.port_type(port) not in PRIMITIVES]
    yield data[0] if data else _with_output(node, _free("ended", outputs))


def _with_output(node: Any, name: str) -> Any:
    """Add an output folder to a node, or to the body of a loop."""
    internals.declare(_body(node), name, internals.Output(type="uri_folder"))
    # A parallel_for loop collects its body's outputs in tables.
    for owner, kind in ((_body(node), "uri_folder"), (node, "mltable")):
        if hasattr(type(owner), "outputs") and name not in owner.outputs:
            port = internals.build_output(owner, name, internals.Output(type=kind))
            dict.__setitem__(owner.outputs, name, port)
    return port


def _wait(node: Any, source: Any, kind: str) -> None:
    """Add an input that is bound to a source to a node, or to the steps of a pipeline component that read no other
    step."""
    name, declared = _free("after", node.inputs), internals.Input(type=kind, optional=True)
    internals.declare(node, name, declared)
    node.inputs[name] = internals.build_input(node, name, declared, source)
    if kind not in PRIMITIVES:
        internals.set_mode(node.inputs[name], "direct")
    for step in _steps(node).values():
        if not _sources(step):
            _wait(step, f"${{{{parent.inputs.{name}}}}}", kind)


def _steps(node: Any) -> dict[str, Any]:
    """Return the steps of a pipeline component by name; none of any other node."""
    jobs = getattr(internals.component(node), "jobs", {})
    return {name: job for name, job in jobs.items() if isinstance(job, internals.BaseNode)}


def _free(name: str, ports: Mapping[str, Any]) -> str:
    """Return the name, or NAME_2, NAME_3 and so on if a port has it."""
    return next(each for each in (name, *(f"{name}_{n}" for n in range(2, len(ports) + 3))) if each not in ports)
