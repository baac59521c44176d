"""Compare the graph that an edit should result in with the one that was read from the edited text."""

import json
from collections.abc import Iterator
from os.path import normpath

from allranks.contract.templating import PRIMITIVES, wire
from allranks_studio.documents.canvas import Graph, InputPort, Layout, Node
from allranks_studio.documents.edits import Expression, FromInput, FromOutput, Literal, Value


def difference(intended: Graph, read: Graph) -> list[str]:
    """Return a line for each difference of two graphs; none if they mean the same.

    An input that is not set equals one that is set to its default. Types are not compared, since the reader derives
    those of undeclared inputs from their use; neither are lines, locks, versions, descriptions and the order of nodes.
    """
    ours, theirs = dict(_facts(intended, "")), dict(_facts(read, ""))
    steps = {path for path, _ in ours} & {path for path, _ in theirs} | {""}
    lines = []
    for key in {**ours, **theirs}:
        path, what = key
        if path in steps and ours.get(key) != theirs.get(key):
            if key not in theirs:
                told = "it would be missing"
            else:
                told = f"{theirs[key]}, not {ours[key]}" if key in ours else "it would appear"
            lines.append(f"{what} of {path}: {told}" if path else f"{what}: {told}")
    return lines


def _facts(graph: Graph, path: str) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield what a graph says, as text, by the path of a step and a name."""
    # The inputs of a nested pipeline are those of its step, which has their values.
    kind = "default of input" if path else "input"
    yield from (((path, f"{kind} {port.name}"), _effective(port)) for port in graph.inputs)
    yield from (((path, f"output {output.name}"), shown(output.value)) for output in graph.outputs)
    for node in graph.nodes:
        yield (path, f"step {node.name}"), ""
        yield from (((node.path, what), fact) for what, fact in _node_facts(node))
        if node.graph is not None:
            yield from _facts(node.graph, node.path)


def _node_facts(node: Node) -> Iterator[tuple[str, str]]:
    yield "kind", f"{node.kind} with steps" if node.graph is not None else node.kind
    yield from ((what, getattr(node, what) or "none") for what in ("component", "compute", "note"))
    yield "layout", _layout(node.layout)
    yield "predecessors", ", ".join(sorted(node.after)) or "none"
    # A stand-in's component is not on this machine: its ports are those that the pipeline sets and reads.
    is_stand_in = node.kind == "stand_in"
    yield from ((f"input {p.name}", _effective(p)) for p in node.inputs if p.value is not None or not is_stand_in)
    # A loop has the outputs of its body.
    has_own = not is_stand_in and node.kind != "parallel_for"
    yield from ((f"output {port.name}", "declared") for port in node.outputs if has_own)


def _effective(port: InputPort) -> str:
    """Return the value of an input, or else its default. Values that mean the same give the same text."""
    value = port.value
    if value is None and port.default is not None:
        value = Literal(port.default)
    if not isinstance(value, Literal) or value.value is None:
        return "not set" if value is None or isinstance(value, Literal) else shown(value)
    if port.type in ("integer", "number"):
        try:
            return shown(Literal(float(value.value)))
        except ValueError:
            return shown(value)
    # A path may be written in several ways, and a number as text.
    return shown(Literal(wire(value.value) if port.type in PRIMITIVES else normpath(str(value.value))))


def _layout(layout: Layout | None) -> str:
    if layout is None:
        return "none"
    return f"{layout.distribution} {shown(layout.instances)} x {shown(layout.processes)}"


def shown(value: Value) -> str:
    """Return a value for messages."""
    match value:
        case Literal(literal):
            return json.dumps(literal)
        case FromInput(name):
            return f"input {name}"
        case FromOutput(node, port):
            return f"output {port} of {node}"
        case Expression(text):
            return text
