"""Wrap nodes in a nested pipeline: the inputs and outputs that it needs, and their bindings outside."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from allranks_studio.documents.canvas import Graph, InputPort, Node, OutputPort, Port
from allranks_studio.documents.edits import Expression, FromInput, FromOutput, Value
from allranks_studio.documents.rewiring import (
    node_values,
    refuse_cycle,
    refused,
    values,
    with_paths,
    with_values,
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
    for where, value in values(graph):
        if isinstance(value, Expression) and any(name in value.text for name in moved):
            raise refused(where, f"{value.text} names a step that would be moved", "", "edit the code first")
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
    inner_names: Mapping[Value, str] = {value: name for name, value in interface.inputs.items()}
    outer_names: Mapping[Value, str] = {value: name for name, value in interface.outputs.items()}

    def inner_value(value: Value) -> Value:
        return FromInput(inner_names[value]) if value in inner_names else value

    def outer_value(value: Value) -> Value:
        return FromOutput(name, outer_names[value]) if value in outer_names else value

    inner_nodes = tuple(
        replace(with_values(node, inner_value), after=tuple(each for each in node.after if each in interface.nodes))
        for node in moved
    )
    types = {(node.name, port.name): port.type for node in graph.nodes for port in node.outputs}
    ports = [_input(graph, inner_nodes, port, value, types) for port, value in interface.inputs.items()]
    outputs = tuple(
        OutputPort(port, types.get((value.node, value.port), ""), value) for port, value in interface.outputs.items()
    )
    nested = Node(
        path="",
        name=name,
        kind="pipeline",
        component=name,
        inputs=tuple(replace(port, value=interface.inputs[port.name]) for port in ports),
        outputs=tuple(Port(output.name, output.type) for output in outputs),
        graph=Graph(tuple(ports), outputs, inner_nodes),
        after=tuple(dict.fromkeys(each for node in moved for each in node.after if each not in interface.nodes)),
    )
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.name not in interface.nodes:
            after = (name if each in interface.nodes else each for each in node.after)
            nodes.append(replace(with_values(node, outer_value), after=tuple(dict.fromkeys(after))))
        elif node is moved[0]:
            nodes.append(with_paths(nested, around))
    others = tuple(replace(output, value=outer_value(output.value)) for output in graph.outputs)
    result = replace(graph, nodes=tuple(nodes), outputs=others)
    refuse_cycle(result, f"step {name}")
    return result


def _input(
    graph: Graph,
    nodes: Collection[Node],
    name: str,
    value: FromInput | FromOutput,
    types: Mapping[tuple[str, str], str],
) -> InputPort:
    """Return an input of the nested pipeline, with the type of its source, or else of its first use."""
    if isinstance(value, FromOutput):
        return InputPort(name, types.get((value.node, value.port), "uri_folder"))
    source = next((port for port in graph.inputs if port.name == value.name), None)
    if source is not None:
        optional = source.optional
        return InputPort(name, source.type, optional)
    used = next((port.type for node in nodes for port in node.inputs if port.value == FromInput(name)), "integer")
    return InputPort(name, used)
