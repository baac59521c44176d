"""Find and change parts of the graph of a document, at any depth. Each function returns a new graph."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter
from types import MappingProxyType
from typing import TypeVar

from allranks.errors import InputError, Problem, did_you_mean
from allranks_studio.documents.canvas import Graph, Node, Port
from allranks_studio.documents.edits import FromOutput, Value

_PortT = TypeVar("_PortT", bound=Port)


def refused(where: str, found: str, expected: str = "", fix: str = "") -> InputError:
    """Return the error of an impossible edit."""
    return InputError(Problem(where, found, expected, fix))


def node_at(graph: Graph, path: str) -> Node:
    """Return the node at a path. Raise InputError if there is none."""
    around, _, name = path.rpartition(".")
    names = {node.name: node for node in graph_at(graph, around).nodes}
    if name not in names:
        expected = f"one of {', '.join(names)}" if names else "a step; there are none"
        raise refused(f"step {path}", "there is no such step", expected, did_you_mean(name, names))
    return names[name]


def graph_at(graph: Graph, path: str) -> Graph:
    """Return the graph at a path, "" for the whole. Raise InputError if there is none."""
    if not path:
        return graph
    inner = node_at(graph, path).graph
    if inner is None:
        raise refused(f"step {path}", "the step contains no graph", "a nested pipeline")
    return inner


def parent_of(path: str) -> str:
    """Return the path of the graph that a node is in."""
    return path.rpartition(".")[0]


def with_graph(graph: Graph, path: str, inner: Graph) -> Graph:
    """Return the whole graph with another graph at a path, and in all steps of the same nested pipeline.

    These steps follow the inputs and outputs of their graph. What used an output that is gone is disconnected.
    """
    return _with_paths(_with_code(graph, graph_at(graph, path), inner) if path else inner, "")


def _with_code(graph: Graph, old: Graph, new: Graph) -> Graph:
    """Return a graph in which a new graph replaces those that the same code makes as the old one."""

    def changed(node: Node) -> Node:
        if node.graph is None:
            return node
        is_same = node.graph is old or _lines(node.graph) == _lines(old) != []
        inner = new if is_same else _with_code(node.graph, old, new)
        inputs = _followed(node.inputs, node.graph.inputs, inner.inputs)
        results = [[Port(output.name, output.type) for output in each.outputs] for each in (node.graph, inner)]
        return replace(node, graph=inner, inputs=inputs, outputs=_followed(node.outputs, *results))

    nodes = tuple(map(changed, graph.nodes))
    gone: dict[Value, None] = {}
    for before, after in zip(graph.nodes, nodes, strict=True):
        for name in {port.name for port in before.outputs} - {port.name for port in after.outputs}:
            gone[FromOutput(before.name, name)] = None
    return rewired(replace(graph, nodes=nodes), gone)


def _lines(graph: Graph) -> list[tuple[str, int]]:
    return [(node.name, node.first) for node in graph.nodes]


def _followed(ports: Sequence[_PortT], before: Sequence[_PortT], after: Sequence[_PortT]) -> tuple[_PortT, ...]:
    """Return the ports of a step, whose graph had some ports before, and has others after an edit."""
    old, new = ({port.name for port in each} for each in (before, after))
    return (*(port for port in ports if port.name not in old - new), *(port for port in after if port.name not in old))


def _with_paths(graph: Graph, around: str) -> Graph:
    """Return a graph whose nodes have paths below the path around it."""

    def placed(node: Node) -> Node:
        path = f"{around}.{node.name}".lstrip(".")
        return replace(node, path=path, graph=node.graph and _with_paths(node.graph, path))

    return replace(graph, nodes=tuple(map(placed, graph.nodes)))


def rewired(
    graph: Graph, changes: Mapping[Value, Value | None], names: Mapping[str, str | None] = MappingProxyType({})
) -> Graph:
    """Return a graph with other values. Those of nested graphs stay.

    changes: new values by the old ones. None unsets an input, and removes an output
    names:   new names of nodes that are waited for, and whose outputs are used, by the old ones. None disconnects
    """

    def changed(value: Value) -> Value | None:
        if value in changes:
            return changes[value]
        if not isinstance(value, FromOutput) or value.node not in names:
            return value
        name = names[value.node]
        return replace(value, node=name) if name is not None else None

    def node_of(node: Node) -> Node:
        inputs = (port if port.value is None else replace(port, value=changed(port.value)) for port in node.inputs)
        after = dict.fromkeys(names.get(name, name) for name in node.after)
        layout = node.layout
        if layout is not None:
            instances, processes = changed(layout.instances), changed(layout.processes)
            layout = replace(layout, instances=instances or layout.instances, processes=processes or layout.processes)
        return replace(node, inputs=tuple(inputs), after=tuple(name for name in after if name), layout=layout)

    outputs = ((output, changed(output.value)) for output in graph.outputs)
    return replace(
        graph,
        nodes=tuple(map(node_of, graph.nodes)),
        outputs=tuple(replace(output, value=value) for output, value in outputs if value is not None),
    )


def values(graph: Graph) -> Iterator[tuple[str, Value]]:
    """Yield the values in a graph, without those of nested graphs, each with the place for messages."""
    for node in graph.nodes:
        yield from node_values(node)
    yield from ((f"output {output.name}", output.value) for output in graph.outputs)


def node_values(node: Node) -> Iterator[tuple[str, Value]]:
    """Yield the values of a node, each with the place for messages."""
    yield from ((f"step {node.path}, input {p.name}", p.value) for p in node.inputs if p.value is not None)
    if node.layout is not None:
        yield f"step {node.path}, instances", node.layout.instances
        yield f"step {node.path}, processes", node.layout.processes


def needs(node: Node) -> set[str]:
    """Return the names of the nodes that a node waits for."""
    return {value.node for _, value in node_values(node) if isinstance(value, FromOutput)} | set(node.after)


def refuse_cycle(graph: Graph, where: str) -> None:
    """Raise InputError if nodes of a graph wait for each other."""
    waits: Mapping[str, set[str]] = {node.name: needs(node) for node in graph.nodes}
    try:
        TopologicalSorter(waits).prepare()
    except CycleError as error:
        found = f"the steps would wait for each other: {' -> '.join(error.args[1])}"
        raise refused(where, found, "connections without a cycle", "remove one of these connections first") from None
