"""Compare the graph that an edit should result in with the one that was read from the edited text."""

import json
from collections.abc import Iterator, Mapping
from os.path import normpath

from allranks.contract.templating import PRIMITIVES, wire
from allranks_studio.documents.canvas import Graph, InputPort, Layout, Node, Port
from allranks_studio.documents.edits import Expression, FromInput, FromOutput, Literal, Value


def difference(intended: Graph, read: Graph) -> list[str]:
    """Return a line for each difference of two graphs; none if they mean the same.

    An input that is not set equals one that is set to its default. Types are not compared, since the reader derives
    those of undeclared inputs from their use; neither are lines, locks, versions, descriptions and the order of nodes.
    """
    return list(_graphs("", intended, read))


def _graphs(path: str, intended: Graph, read: Graph) -> Iterator[str]:
    around = f" of {path}" if path else ""
    yield from _inputs(f"input{around}", intended.inputs, read.inputs)
    outputs = ({each.name: each.value for each in graph.outputs} for graph in (intended, read))
    yield from _entries(f"output{around}", *outputs)
    ours, theirs = ({node.name: node for node in graph.nodes} for graph in (intended, read))
    yield from _names("step", ours, theirs, path)
    for name in ours.keys() & theirs.keys():
        yield from _nodes(f"{path}.{name}".lstrip("."), ours[name], theirs[name])


def _nodes(path: str, intended: Node, read: Node) -> Iterator[str]:
    for what in ("kind", "component", "compute", "note"):
        yield from _line(f"{what} of {path}", getattr(intended, what) or "none", getattr(read, what) or "none")
    yield from _line(f"layout of {path}", _layout(intended.layout), _layout(read.layout))
    yield from _line(f"steps before {path}", ", ".join(sorted(intended.after)), ", ".join(sorted(read.after)))
    if read.kind == "stand_in":
        # Its component is not on this machine: its ports are those that the pipeline sets and reads.
        ours, theirs = (tuple(each for each in node.inputs if each.value is not None) for node in (intended, read))
        yield from _inputs(f"input of {path}", ours, theirs)
        return
    yield from _inputs(f"input of {path}", intended.inputs, read.inputs)
    outputs: list[Mapping[str, Port]] = [{port.name: port for port in node.outputs} for node in (intended, read)]
    yield from _names("output", outputs[0], outputs[1], path)
    if intended.graph is not None and read.graph is not None:
        yield from _graphs(path, intended.graph, read.graph)
    elif intended.graph is not read.graph:
        yield f"step {path}: it is {'not ' if read.graph is None else ''}a nested pipeline"


def _inputs(what: str, intended: tuple[InputPort, ...], read: tuple[InputPort, ...]) -> Iterator[str]:
    ours, theirs = ({port.name: _effective(port) for port in ports} for ports in (intended, read))
    yield from _entries(what, ours, theirs)


def _effective(port: InputPort) -> Value | None:
    value = port.value
    if value is None and port.default is not None:
        value = Literal(port.default)
    if not isinstance(value, Literal) or value.value is None:
        return None if isinstance(value, Literal) else value
    if port.type in ("integer", "number"):
        try:
            return Literal(float(value.value))
        except ValueError:
            return value
    # A path may be written in several ways, and a number as text.
    return Literal(wire(value.value) if port.type in PRIMITIVES else normpath(str(value.value)))


def _entries(what: str, ours: Mapping[str, Value | None], theirs: Mapping[str, Value | None]) -> Iterator[str]:
    noun, _, around = what.partition(" of ")
    yield from _names(noun, ours, theirs, around)
    for name in ours.keys() & theirs.keys():
        yield from _line(f"{noun} {name}{f' of {around}' if around else ''}", shown(ours[name]), shown(theirs[name]))


def _names(noun: str, ours: Mapping[str, object], theirs: Mapping[str, object], around: str) -> Iterator[str]:
    of = f" of {around}" if around else ""
    yield from (f"{noun} {name}{of}: it would be missing" for name in ours if name not in theirs)
    yield from (f"{noun} {name}{of}: it would appear" for name in theirs if name not in ours)


def _line(what: str, ours: str, theirs: str) -> Iterator[str]:
    if ours != theirs:
        yield f"{what}: {theirs}, not {ours}"


def _layout(layout: Layout | None) -> str:
    if layout is None:
        return "none"
    return f"{layout.distribution} {shown(layout.instances)} x {shown(layout.processes)}"


def shown(value: Value | None) -> str:
    """Return a value for messages."""
    match value:
        case None:
            return "not set"
        case Literal(literal):
            return json.dumps(literal)
        case FromInput(name):
            return f"input {name}"
        case FromOutput(node, port):
            return f"output {port} of {node}"
        case Expression(text):
            return text
