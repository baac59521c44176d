"""Wrap nodes in a nested pipeline: the inputs and outputs that it needs, and their bindings outside."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from allranks_studio.documents.canvas import Graph, InputPort, Node, OutputPort, Port
from allranks_studio.documents.edits import Expression, FromInput, FromOutput, Value
from allranks_studio.documents.rewiring import node_values, refuse_cycle, refused, rewired, values


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
    inside = [each for node in moved.values() for each in node_values(node)]
    for where, value in inside:
        if isinstance(value, Expression):
            raise refused(where, f"{value.text} cannot be moved to another pipeline", "", "edit the code first")
    for where, value in values(graph):
        if isinstance(value, Expression) and (used := {*moved} & {*re.findall(r"\w+", value.text)}):
            raise refused(where, f"{value.text} names {used.pop()}, which would be moved", "", "edit the code first")
    inputs: dict[str, FromInput | FromOutput] = {}
    for value in dict.fromkeys(value for _, value in inside):
        if isinstance(value, FromInput) or (isinstance(value, FromOutput) and value.node not in moved):
            inputs[_free(value, {*inputs, *moved})] = value
    outside = [value for node in graph.nodes if node.name not in moved for _, value in node_values(node)]
    outputs: dict[str, FromOutput] = {}
    for value in dict.fromkeys([*outside, *(output.value for output in graph.outputs)]):
        if isinstance(value, FromOutput) and value.node in moved:
            outputs[_free(value, outputs)] = value
    return Wrapping(tuple(moved), inputs, outputs)


def _free(value: FromInput | FromOutput, taken: Collection[str]) -> str:
    candidates = [value.name] if isinstance(value, FromInput) else [value.port, f"{value.node}_{value.port}"]
    candidates += [f"{candidates[-1]}_{number}" for number in range(2, len(taken) + 3)]
    return next(name for name in candidates if name not in taken)


def wrapped(graph: Graph, names: Collection[str], name: str) -> Graph:
    """Return the graph with nodes in a nested pipeline."""
    interface = wrapping(graph, names)
    moved = tuple(node for node in graph.nodes if node.name in interface.nodes)
    others = {node.name: None for node in graph.nodes if node.name not in interface.nodes}
    ports: dict[Value, Port] = {FromInput(port.name): port for port in graph.inputs}
    ports |= {FromOutput(node.name, port.name): port for node in graph.nodes for port in node.outputs}
    unknown = Port("", "uri_folder")
    sources = ((port, value, ports.get(value, unknown)) for port, value in interface.inputs.items())
    inputs = tuple(InputPort(port, source.type, source.optional, value=value) for port, value, source in sources)
    outputs = tuple(
        OutputPort(port, ports.get(value, unknown).type, value) for port, value in interface.outputs.items()
    )
    inner = rewired(Graph(nodes=moved), {port.value: FromInput(port.name) for port in inputs if port.value}, others)
    nested = Node(
        path=name,
        name=name,
        kind="pipeline",
        component=name,
        inputs=inputs,
        outputs=tuple(Port(output.name, output.type) for output in outputs),
        graph=replace(inner, inputs=tuple(replace(port, value=None) for port in inputs), outputs=outputs),
        after=tuple(dict.fromkeys(each for node in moved for each in node.after if each in others)),
    )
    uses: Mapping[Value, Value] = {output.value: FromOutput(name, output.name) for output in outputs}
    outer = rewired(graph, uses, dict.fromkeys(interface.nodes, name))
    result = replace(outer, nodes=(*(node for node in outer.nodes if node.name in others), nested))
    refuse_cycle(result, f"step {name}")
    return result
