"""Resolve the inputs and the output paths of nodes, and expand Azure ML's macros.

A plan contains macros (``${{creation_context.trigger_time}}``) unexpanded, so that plans can be compared. They are
expanded when a run starts; a resumed run has the same values.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from allranks.contract.templating import wire
from allranks.plan.graph import Graph, Node, Pipeline, Plan, Step
from allranks.plan.ports import GraphInput, Input, Literal, NodeOutput, Output, Path, Reference, Value, references

Lookup = Callable[[Reference], str | None]
"""Returns the path, or the text of a primitive, that a reference resolves to; None if it has no value."""


@dataclass(frozen=True)
class ResolvedInput:
    """An input port with its value: text for a primitive, an absolute path for data, None if it has no value."""

    name: str
    type: str
    mode: str
    value: str | None


def resolved_inputs(inputs: Iterable[Input], lookup: Lookup) -> list[ResolvedInput]:
    """Return every input port with its value."""
    return [ResolvedInput(port.name, port.type, port.mode, resolve(port.value, lookup)) for port in inputs]


def resolve(value: Value | str | None, lookup: Lookup) -> str | None:
    """Return the text of a value in a command; None if it has none."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Literal):
        return wire(value.value)
    if isinstance(value, Path):
        return value.path
    if isinstance(value, (GraphInput, NodeOutput)):
        return lookup(value)
    return "".join(part if isinstance(part, str) else lookup(part) or "" for part in value.parts)


def of_pipeline(node: Pipeline, lookup: Lookup) -> dict[str, str | None]:
    """Return the inputs of a node's graph as text. An input that the node does not set has the graph's default."""
    bound = {port.name: resolve(port.value, lookup) for port in node.inputs}
    own = {port.name: port.value for port in node.graph.inputs}
    return {name: resolve(own[name], lookup) if bound.get(name) is None else bound[name] for name in own}


NAME = "name"
"""The job's name. Default: the run's id."""

TRIGGER_TIME = "creation_context.trigger_time"
"""The time at which the schedule fired. For a run without a schedule, the time at which it was created."""


EXPRESSION = re.compile(r"\$\{\{\s*(" + "|".join(map(re.escape, (NAME, TRIGGER_TIME))) + r")\s*}}")


def filled(plan: Plan, name: str, triggered: float) -> Plan:
    """Return the plan with the macros in its inputs replaced by their values in a run.

    name:      of the job
    triggered: when the schedule fired, or the run was created, in seconds since the epoch
    """
    # The format of Azure ML is not documented, so parsers should accept others too.
    time = datetime.fromtimestamp(triggered, UTC).strftime("%Y-%m-%d %H:%M:%S")
    values = {NAME: name, TRIGGER_TIME: time}
    inputs = tuple(_filled(port, values) for port in plan.graph.inputs)
    return replace(plan, graph=replace(plan.graph, inputs=inputs))


def inputs_of(plan: Plan) -> dict[str, str | None]:
    """Return the pipeline's inputs as text."""
    return {port.name: resolve(port.value, lambda _: None) for port in plan.graph.inputs}


def seconds(time: datetime) -> float:
    """Return a time as seconds since the epoch. One without a time zone is in UTC."""
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def _filled(port: Input, values: Mapping[str, str]) -> Input:
    if port.type != "string" or not isinstance(port.value, Literal) or not isinstance(port.value.value, str):
        return port
    return replace(port, value=Literal(EXPRESSION.sub(lambda match: values[match[1]], port.value.value)))


ARTIFACTS = "artifacts"
"""The name of the undeclared output. A component may declare an ordinary output of this name."""


def graph_output_paths(graph: Graph, outer: Mapping[str, str]) -> dict[NodeOutput, str]:
    """Return the paths of the nodes' outputs that are outputs of the graph.

    outer: the paths that the enclosing node sets, by the name of the graph's output
    """
    paths: dict[NodeOutput, str] = {}
    for port in graph.outputs:
        path = outer.get(port.name) or port.path
        if path is not None:
            # The graph may return an output under several names. The first path applies.
            paths.setdefault(port.source, path)
    return paths


def output_path_of(node: Node, output: Output, passed: Mapping[NodeOutput, str]) -> str | None:
    """Return the path that the user sets for a node's output; None if it is in the run's folder.

    passed: the result of `graph_output_paths` for the graph
    """
    return passed.get(NodeOutput(node.name, output.name)) or output.path


def output_paths_of(node: Node, passed: Mapping[NodeOutput, str]) -> dict[str, str]:
    """Return the paths that the user sets for a node's outputs, by name, without those in the run's folder."""
    paths = {port.name: output_path_of(node, port, passed) for port in node.outputs}
    return {name: path for name, path in paths.items() if path is not None}


def with_bound_artifacts(nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes, with an artifacts output on each step whose artifacts another node reads. A folder that a step
    declares under this name holds the artifacts."""
    listed = list(nodes)
    read = {
        reference.node
        for node in listed
        for value in node.values()
        for reference in references(value)
        if isinstance(reference, NodeOutput) and reference.name == ARTIFACTS
    }
    return [_with_artifacts(node) if isinstance(node, Step) and node.name in read else node for node in listed]


def _with_artifacts(step: Step) -> Step:
    if any(port.name == ARTIFACTS for port in step.outputs):
        outputs = (
            replace(port, holds_artifacts=port.type == "uri_folder") if port.name == ARTIFACTS else port
            for port in step.outputs
        )
        return replace(step, outputs=tuple(outputs))
    return replace(step, outputs=(*step.outputs, Output(ARTIFACTS, "uri_folder", "rw_mount", holds_artifacts=True)))
