"""Find and change parts of the graph of a document, at any depth. Each function returns a new graph."""

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from allranks.errors import InputError, Problem, did_you_mean
from allranks_studio.documents.canvas import Graph, InputPort, Layout, Node
from allranks_studio.documents.edits import Expression, FromOutput, Value


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


def changed_graph(graph: Graph, path: str, change: Callable[[Graph], Graph]) -> Graph:
    """Return the whole graph with the graph at a path changed."""
    if not path:
        return change(graph)
    return changed_node(graph, path, lambda node: replace(node, graph=change(graph_at(graph, path))))


def changed_node(graph: Graph, path: str, change: Callable[[Node], Node]) -> Graph:
    """Return the whole graph with the node at a path changed."""
    old, around = node_at(graph, path), path.rpartition(".")[0]
    return changed_graph(
        graph, around, lambda inner: replace(inner, nodes=tuple(change(n) if n is old else n for n in inner.nodes))
    )


def values(graph: Graph) -> Iterator[tuple[str, Value]]:
    """Yield the values in a graph, without those of nested graphs, each with the place for messages."""
    for node in graph.nodes:
        yield from node_values(node)
    yield from ((f"output {output.name}", output.value) for output in graph.outputs)


def node_values(node: Node) -> Iterator[tuple[str, Value]]:
    yield from ((f"step {node.path}, input {p.name}", p.value) for p in node.inputs if p.value is not None)
    if node.layout is not None:
        yield f"step {node.path}, instances", node.layout.instances
        yield f"step {node.path}, processes", node.layout.processes


def with_values(node: Node, change: Callable[[Value], Value | None]) -> Node:
    """Return the node with its values changed. None unsets an input."""

    def input_of(port: InputPort) -> InputPort:
        return port if port.value is None else replace(port, value=change(port.value))

    layout: Layout | None = node.layout
    if layout is not None:
        instances, processes = change(layout.instances), change(layout.processes)
        layout = replace(layout, instances=instances or layout.instances, processes=processes or layout.processes)
    return replace(node, inputs=tuple(map(input_of, node.inputs)), layout=layout)


def disconnected(graph: Graph, path: str, is_gone: Callable[[Value], bool]) -> Graph:
    """Unset the inputs of the graph at a path that have a value, and remove its outputs that have it.

    Removed outputs of a nested graph are disconnected in the graphs around it.
    """
    inner = graph_at(graph, path)
    nodes = tuple(with_values(node, lambda value: None if is_gone(value) else value) for node in inner.nodes)
    graph = changed_graph(graph, path, lambda inner: replace(inner, nodes=nodes))
    return without_outputs(graph, path, [output.name for output in inner.outputs if is_gone(output.value)])


def without_outputs(graph: Graph, path: str, names: Collection[str]) -> Graph:
    """Remove outputs of the graph at a path, and disconnect what uses them in the graphs around it."""

    def changed(inner: Graph) -> Graph:
        return replace(inner, outputs=tuple(output for output in inner.outputs if output.name not in names))

    graph = changed_graph(graph, path, changed)
    if not path or not names:
        return graph
    around, _, name = path.rpartition(".")
    graph = changed_node(
        graph, path, lambda node: replace(node, outputs=tuple(p for p in node.outputs if p.name not in names))
    )
    return disconnected(
        graph, around, lambda value: isinstance(value, FromOutput) and value.node == name and value.port in names
    )


def refuse_mentions(graph: Graph, name: str, change: str) -> None:
    """Raise InputError if code that cannot be edited here names an input or a node of a graph."""
    for where, value in values(graph):
        if isinstance(value, Expression) and re.search(rf"\b{re.escape(name)}\b", value.text):
            raise refused(where, f"{value.text} names {name}, which would be {change}", "", "edit the code first")


def with_paths(node: Node, around: str) -> Node:
    """Return the node with its path, and those of the nodes in it, below the path of the graph around it."""
    path = f"{around}.{node.name}" if around else node.name
    inner = node.graph
    if inner is not None:
        inner = replace(inner, nodes=tuple(with_paths(each, path) for each in inner.nodes))
    return replace(node, path=path, graph=inner)


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
