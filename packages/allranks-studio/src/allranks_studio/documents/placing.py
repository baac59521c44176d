"""Join the graph that was read with the places in the text."""

from collections.abc import Mapping
from dataclasses import replace

from allranks.contract.templating import PRIMITIVES
from allranks_studio.documents.canvas import Graph, InputPort, Lock, Node
from allranks_studio.documents.edits import Expression, Literal
from allranks_studio.documents.source import NodePlace, Outline, ValuePlace

_HIDDEN = "The value is set by code that is not in the step's call; edit it there."
_OTHER = "Other code sets another value than this one; edit that code."


def placed(graph: Graph, outline: Outline) -> Graph:
    """Return a graph with the lines, the locks and the code of an outline.

    A node without a place is locked. An outline names a node whose name it cannot know by its line: ``@12``.
    """
    return _placed(graph, outline, "", "")


def _placed(graph: Graph, outline: Outline, path: str, key: str) -> Graph:
    prefix = f"{key}." if key else ""
    inputs = {name: place for (around, name), place in outline.inputs.items() if around in (path, key)}
    outputs = {name: place for (around, name), place in outline.outputs.items() if around in (path, key)}
    return replace(
        graph,
        inputs=tuple(_input(port, inputs, is_set=False) for port in graph.inputs),
        outputs=tuple(
            replace(port, line=outputs[port.name].line) if port.name in outputs else port for port in graph.outputs
        ),
        nodes=tuple(_node(node, outline, prefix) for node in graph.nodes),
    )


def _node(node: Node, outline: Outline, prefix: str) -> Node:
    key = f"{prefix}{node.name}"
    place, by_line = outline.nodes.get(key), outline.nodes.get(f"{prefix}@{node.first}")
    if by_line is not None and (place is None or (by_line.lock is not None and not _made_in(place, node))):
        key, place = f"{prefix}@{node.first}", by_line
    graph = _placed(node.graph, outline, node.path, key) if node.graph is not None else None
    if place is None:
        text = "Code that the designer does not read makes this step; edit that code."
        lock = Lock("helper", text, node.first)
        if not node.first:
            lock = Lock("unsupported", "This step is in another file; edit it there.", 0)
        return replace(node, lock=lock, graph=graph)
    # A locked node may be set by other code. Its inputs cannot be edited anyway.
    inputs = tuple(_input(port, place.inputs, is_set=place.lock is None) for port in node.inputs)
    return replace(node, first=place.first, last=place.last, lock=place.lock, inputs=inputs, graph=graph)


def _made_in(place: NodePlace, node: Node) -> bool:
    """Return whether a node was made in the lines of a place."""
    return not node.first or place.first <= node.first <= place.last


def _input(port: InputPort, places: Mapping[str, ValuePlace], *, is_set: bool) -> InputPort:
    """Return an input with its place. is_set: whether all values are in the text"""
    place = places.get(port.name)
    if place is None:
        is_hidden = is_set and port.value is not None
        return replace(port, locked=_HIDDEN) if is_hidden else port
    port = replace(port, line=place.line, locked=place.lock.text if place.lock is not None else "")
    ours, theirs = place.value, port.value
    is_same = ours == theirs
    if isinstance(ours, Literal) and isinstance(theirs, Literal):
        if port.type not in PRIMITIVES:  # a path, which the reader resolves
            return replace(port, value=ours)
        is_same = is_same or str(ours.value) == str(theirs.value)
    elif isinstance(ours, Expression) or theirs is None:
        return replace(port, value=ours)
    return port if is_same or port.locked else replace(port, locked=_OTHER)
