"""Let a step of a pipeline start after others, without data between them."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from allranks.errors import InputError, Problem
from allranks.plan.ports import PRIMITIVES, needed_nodes
from allranks.plan.reader.context import pipeline_output, value_of
from allranks.sdk import internals, user_code
from allranks.sdk.entity_ports import flat, plain

_Node = TypeVar("_Node")


def after(node: _Node, *others: Any) -> _Node:
    """Let a step start after other steps have ended, although it reads nothing of them, and return the step::

        allranks.after(evaluate, prepare)

    node: azure-ai-ml's node of a component or of `command`, a sweep, a loop, or a pipeline component
    others: nodes of the same pipeline

    Azure ML orders steps by their data only. The step therefore gets an optional input, `after`, that its command does
    not name. It is bound to an output of the other step by reference: nothing is mounted or downloaded. A step without
    an output of data gets one, `ended`. Both are declared in copies of the components. The step is not started if
    another one fails, and is started if it is skipped.

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
    """Return a node as messages name it: azure-ai-ml names nodes when their pipeline is complete."""
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
    """Return what a port is bound to, as the SDK would send it."""
    data = internals.data(port)
    return str(data.path if isinstance(data, (internals.Input, internals.Output)) else plain(data))


def _ends(node: Any, where: str) -> Iterator[Any]:
    """Yield outputs of a node that are there when the node has ended."""
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
    """Give a node, or the body of a loop, an output that is a folder, and return it."""
    internals.declare(_body(node), name, internals.Output(type="uri_folder"))
    # A parallel_for loop has the tables of its body's outputs.
    for owner, kind in ((_body(node), "uri_folder"), (node, "mltable")):
        if hasattr(type(owner), "outputs") and name not in owner.outputs:
            port = internals.build_output(owner, name, internals.Output(type=kind))
            dict.__setitem__(owner.outputs, name, port)
    return port


def _wait(node: Any, source: Any, kind: str) -> None:
    """Give a node an input that is bound to a source; in a pipeline component, the steps that read no other step."""
    name, declared = _free("after", node.inputs), internals.Input(type=kind, optional=True)
    internals.declare(node, name, declared)
    node.inputs[name] = internals.build_input(node, name, declared, source)
    if kind not in PRIMITIVES:
        internals.set_mode(node.inputs[name], "direct")
    for step in _steps(node).values():
        if not _sources(step):
            _wait(step, f"${{{{parent.inputs.{name}}}}}", kind)


def _steps(node: Any) -> dict[str, Any]:
    """Return the steps of a pipeline component by name; of any other node, none."""
    jobs = getattr(internals.component(node), "jobs", {})
    return {name: job for name, job in jobs.items() if isinstance(job, internals.BaseNode)}


def _free(name: str, ports: Mapping[str, Any]) -> str:
    """Return the name, or NAME_2, NAME_3 and so on where a port has it already."""
    return next(each for each in (name, *(f"{name}_{n}" for n in range(2, len(ports) + 3))) if each not in ports)
