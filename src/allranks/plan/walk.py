"""Walk a graph and the graphs within it: of pipeline components, of the bodies of loops and of trials."""

import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any

from allranks.plan.graph import DoWhile, Graph, Node, ParallelFor, Pipeline, Plan, Step, Sweep
from allranks.plan.ports import GraphInput, GraphOutput, Input, NodeOutput


def walk(graph: Graph, path: str = "") -> Iterator[tuple[str, Node, Graph]]:
    """Yield every node of the graph and of the graphs within it, with its path and its graph.

    A loop's body is walked once, as its first iteration; that of a sweep, as its first trial.
    """
    for node in graph.nodes:
        yield f"{path}{node.name}", node, graph
        if isinstance(node, Pipeline):
            yield from walk(node.graph, f"{path}{node.name}.")
        elif isinstance(node, (DoWhile, ParallelFor)):
            yield from walk(as_pipeline(node.body).graph, f"{path}{node.name}[{first_iteration(node)}].")
        elif isinstance(node, Sweep):
            yield from walk(as_trial(node, 0).graph, f"{path}{node.name}.")


def steps(graph: Graph) -> Iterator[tuple[str, Step]]:
    """Yield every step of the graph and of the graphs within it, with its path."""
    for path, node, _ in walk(graph):
        if isinstance(node, Step):
            yield path, node


LEFT_OUT = "left out of the code of"
"""The beginning of a line about files that are not in a snapshot."""


def left_out(plan: Plan) -> list[str]:
    """Return a line for each snapshot that lacks files of its source."""
    users: dict[str, list[str]] = {}
    for path, step in steps(plan.graph):
        if step.code is not None and step.code.left_out:
            users.setdefault(step.code.left_out, []).append(path)
    return [f"{LEFT_OUT} {', '.join(paths)}: {text}" for text, paths in users.items()]


def first_iteration(loop: DoWhile | ParallelFor) -> str:
    """Return the label of a loop's first iteration; "0" if the items are unknown before the run."""
    if isinstance(loop, ParallelFor) and isinstance(loop.items, tuple) and loop.items:
        return loop.items[0].name
    return "0"


def without_labels(path: str) -> str:
    """Return the path of a node without the labels of iterations."""
    return re.sub(r"\[[^\]]*\]", "", path)


def is_within(path: str, around: str) -> bool:
    """Return whether the node at a path is the one at `around`, or inside it."""
    return path == around or path.startswith((f"{around}.", f"{around}["))


def changed(value: Any, change: Callable[[Any], Any], kept: str = "") -> Any:
    """Return a plan, or a part of one, with everything in it for which `change` returns another object replaced by
    that. kept: the name of a field that does not change"""
    if (new := change(value)) is not value:
        return new
    if isinstance(value, tuple):
        items = tuple(changed(item, change, kept) for item in value)
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    if isinstance(value, (dict, MappingProxyType)):
        parts = {key: changed(part, change, kept) for key, part in value.items()}
        return parts if any(parts[key] is not part for key, part in value.items()) else value
    if not is_dataclass(value) or isinstance(value, type):
        return value
    old = {each.name: getattr(value, each.name) for each in fields(value) if each.name != kept}
    changes = {name: new for name, part in old.items() if (new := changed(part, change, kept)) is not part}
    return replace(value, **changes) if changes else value


def with_steps(graph: Graph, change: Callable[[Step, str], Step], path: str = "") -> Graph:
    """Return the graph with every step, at any depth, replaced by what `change` returns for it and its path.

    The path has no labels of iterations: ``loop.train``. That of a sweep's body is the sweep's.
    """
    return replace(graph, nodes=tuple(_changed(node, change, f"{path}{node.name}") for node in graph.nodes))


def _changed(node: Node, change: Callable[[Step, str], Step], path: str) -> Node:
    if isinstance(node, Step):
        return change(node, path)
    if isinstance(node, Pipeline):
        return replace(node, graph=with_steps(node.graph, change, f"{path}."))
    if isinstance(node, Sweep):
        return replace(node, body=change(node.body, path))
    if isinstance(node, (DoWhile, ParallelFor)):
        body = _changed(node.body, change, f"{path}.{node.body.name}" if isinstance(node.body, Step) else path)
        assert isinstance(body, (Step, Pipeline))
        return replace(node, body=body)
    return node


def as_pipeline(body: Step | Pipeline) -> Pipeline:
    """Return a loop's body as a pipeline. A step is wrapped in a graph with the inputs and outputs of the
    step."""
    if isinstance(body, Pipeline):
        return body
    ports = list(body.inputs)
    variables = dict(body.environment_variables)
    for name, value in variables.items():
        if not isinstance(value, str):
            ports.append(Input(f"environment_variables.{name}", "string", value))
            variables[name] = GraphInput(ports[-1].name)
    step = replace(
        body,
        inputs=tuple(replace(port, value=GraphInput(port.name)) for port in body.inputs),
        outputs=tuple(replace(port, path=None) for port in body.outputs),
        environment_variables=variables,
        after=(),
    )
    inner = Graph(
        (step,),
        tuple(replace(port, value=None) for port in ports),
        tuple(GraphOutput(port.name, NodeOutput(body.name, port.name), port.type) for port in body.outputs),
    )
    return Pipeline(
        body.name,
        inner,
        component=body.component,
        version=body.version,
        display_name=body.display_name,
        inputs=tuple(ports),
        outputs=body.outputs,
        after=body.after,
        location=body.location,
    )


def as_trial(sweep: Sweep, number: int) -> Pipeline:
    """Return a trial as a pipeline of one step, which has the path ``tune.trial[7]`` in a run. Its variables are
    those of the body, and AZUREML_SWEEP_NAME for each parameter."""
    made = as_pipeline(replace(sweep.body, name=f"trial[{number}]", display_name=""))
    (step,) = made.graph.nodes
    assert isinstance(step, Step)
    own = {f"AZUREML_SWEEP_{name}": GraphInput(name) for name in sweep.sampled}
    outputs = tuple(replace(port, asset="") for port in step.outputs)  # those of the best trial are registered
    step = replace(step, environment_variables={**step.environment_variables, **own}, outputs=outputs)
    return replace(made, graph=replace(made.graph, nodes=(step,)))
