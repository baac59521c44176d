"""Wrap nodes in a nested pipeline: the inputs and outputs that it needs, and their bindings outside."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from allranks_studio.documents.canvas import Graph, InputPort, Node, OutputPort, Port
from allranks_studio.documents.edits import Expression, FromInput, FromOutput, Value
from allranks_studio.documents.rewiring import (
    node_values,
    refuse_cycle,
    refuse_mentions,
    refused,
    rewired,
    with_paths,
)


@dataclass(frozen=True)
class Wrapping:
    """The interface of a nested pipeline.

    nodes:   the names of the wrapped nodes, in the graph's order
    inputs:  the values outside, by the name of the input
    outputs: the outputs of wrapped nodes, by the name of the output
    """

    nodes: tuple[str, ...]
    inputs: Mapping[str, FromInput | FromOutput]
    outputs: Mapping[str, FromOutput]


def wrapping(graph: Graph, names: Collection[str]) -> Wrapping:
    """Return the interface that a nested pipeline of nodes of this graph needs.

    Raise InputError if code that cannot be edited here uses values of the graph.
    """
    moved = {node.name: node for node in graph.nodes if node.name in names}
    inside: dict[Value, None] = {}
    for node in moved.values():
        for where, value in node_values(node):
            if isinstance(value, Expression):
                raise refused(where, f"{value.text} cannot be moved to another pipeline", "", "edit the code first")
            if isinstance(value, FromInput) or (isinstance(value, FromOutput) and value.node not in moved):
                inside[value] = None
    outside = [value for node in graph.nodes if node.name not in moved for _, value in node_values(node)]
    outside += [output.value for output in graph.outputs]
    used = dict.fromkeys(value for value in outside if isinstance(value, FromOutput) and value.node in moved)
    for name in moved:
        refuse_mentions(graph, name, "moved")
    inputs: dict[str, FromInput | FromOutput] = {}
    for value in inside:
        assert isinstance(value, (FromInput, FromOutput))
        inputs[_free(value, {*inputs, *moved})] = value
    outputs: dict[str, FromOutput] = {}
    for value in used:
        outputs[_free(value, outputs)] = value
    return Wrapping(tuple(moved), inputs, outputs)


def _free(value: FromInput | FromOutput, taken: Collection[str]) -> str:
    candidates = [value.name] if isinstance(value, FromInput) else [value.port, f"{value.node}_{value.port}"]
    candidates += [f"{candidates[-1]}_{number}" for number in range(2, len(taken) + 3)]
    return next(name for name in candidates if name not in taken)


def wrapped(graph: Graph, names: Collection[str], name: str, around: str) -> Graph:
    """Return the graph with nodes in a nested pipeline. around: the graph's path"""
    interface = wrapping(graph, names)
    moved = [node for node in graph.nodes if node.name in interface.nodes]
    others = {node.name: None for node in graph.nodes if node.name not in interface.nodes}
    inner_values: Mapping[Value, Value] = {value: FromInput(port) for port, value in interface.inputs.items()}
    outer_values: Mapping[Value, Value] = {value: FromOutput(name, port) for port, value in interface.outputs.items()}
    inner = rewired(Graph(nodes=tuple(moved)), inner_values, others)
    outer = rewired(graph, outer_values, dict.fromkeys(interface.nodes, name))
    types: dict[Value, str] = {FromInput(port.name): port.type for port in graph.inputs}
    types |= {FromOutput(node.name, port.name): port.type for node in graph.nodes for port in node.outputs}
    optional: set[Value] = {FromInput(port.name) for port in graph.inputs if port.optional}
    inputs = tuple(
        InputPort(port, types.get(value, "uri_folder"), optional=value in optional)
        for port, value in interface.inputs.items()
    )
    outputs = tuple(
        OutputPort(port, types.get(value, "uri_folder"), value) for port, value in interface.outputs.items()
    )
    nested = Node(
        path="",
        name=name,
        kind="pipeline",
        component=name,
        inputs=tuple(replace(port, value=interface.inputs[port.name]) for port in inputs),
        outputs=tuple(Port(output.name, output.type) for output in outputs),
        graph=replace(inner, inputs=inputs, outputs=outputs),
        after=tuple(dict.fromkeys(each for node in moved for each in node.after if each in others)),
    )
    nested = with_paths(nested, around)
    nodes = [nested if node.name == moved[0].name else node for node in outer.nodes]
    result = replace(outer, nodes=tuple(node for node in nodes if node is nested or node.name in others))
    refuse_cycle(result, f"step {name}")
    return result
