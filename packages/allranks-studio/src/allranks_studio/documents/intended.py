"""The meaning of each edit: the graph that it should result in, whatever the language of the file."""

import keyword
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TypeVar

from allranks.catalog.declared_ports import DATA
from allranks.checks.plan.bindings import article, fits
from allranks.contract.distributions import DISTRIBUTIONS
from allranks.errors import InputError
from allranks.plan import literals, ports
from allranks_studio.documents import edits, rewiring
from allranks_studio.documents.canvas import WITH_PROCESSES, Graph, InputPort, Node, OutputPort, Port
from allranks_studio.documents.edits import Edit, Expression, FromInput, FromOutput, Literal, Value
from allranks_studio.documents.rewiring import graph_at, node_at, refused, rewired, with_graph, with_node
from allranks_studio.documents.wrapping import wrapped

_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_CONTROL = ("condition", "do_while", "parallel_for")


def named(graph: Graph, edit: Edit, taken: Collection[str] = ()) -> Edit:
    """Return the edit with a name for its new node, if it has none. taken: further names that are not free

    Document applies this before both `intended` and the patches, so that they use the same name.
    """
    match edit:
        case edits.AddNode(name=""):
            base = re.split(r"[:/@]", edit.component.removesuffix(".yaml").removesuffix(".yml"))
            words = [word for word in base if word not in ("component", "spec")]
            if edit.component.startswith("registered:"):
                words = words[:2]
            whole = re.sub(r"[^a-z0-9_]", "_", "".join(words[-1:]).lower()) or "step"
            # The first word is the verb: train = train_image_classifier(...).
            first = whole.strip("_").partition("_")[0]
            short = first if first not in ("", whole) and not first[0].isdecimal() else f"{whole}_step"
            return replace(edit, name=_free(graph_at(graph, edit.graph), short, taken))
        case edits.DuplicateNode(name=""):
            stem = re.sub(r"_\d+$", "", edit.node.rpartition(".")[2])
            return replace(edit, name=_free(graph_at(graph, _around(edit.node)), stem, taken))
    return edit


def _names(graph: Graph) -> set[str]:
    """Return the names of steps and inputs, which Python's variables share."""
    return {node.name for node in graph.nodes} | {port.name for port in graph.inputs}


def _free(graph: Graph, base: str, taken: Collection[str]) -> str:
    names = {*taken, *keyword.kwlist, *_names(graph)}
    base = base if _NAME.match(base) else f"_{base}"
    number, name = 1, base
    while name in names:
        number += 1
        name = f"{base}_{number}"
    return name


def intended(graph: Graph, edit: Edit, item: Node | None = None) -> Graph:
    """Return the graph that an edit should result in.

    edit: with the names of new nodes (`named`)
    item: the added component as a node: its kind, ports and layout, without values

    Raise InputError if the edit is impossible.
    """
    match edit:
        case edits.AddNode():
            return _with_node(graph, edit, item)
        case edits.DeleteNode(path):
            return _without_node(graph, path)
        case edits.RenameNode(path, name):
            return _renamed(graph, path, name)
        case edits.DuplicateNode(path, name):
            return _duplicated(graph, path, name)
        case edits.SetInput(path, name, value):
            return _with_value(graph, path, name, value)
        case edits.ResetInput(path, name):
            return _with_value(graph, path, name, None)
        case edits.SetLayout():
            return _with_layout(graph, edit)
        case edits.SetDistribution(path, distribution):
            return _with_distribution(graph, path, distribution)
        case edits.SetCompute("", _):
            return graph
        case edits.SetCompute(path, compute):
            node = _editable(graph, path)
            if node.kind in _CONTROL:
                raise refused(f"step {path}", f"a {node.kind} has no compute", "a step that runs a component")
            return with_node(graph, path, replace(node, compute=compute))
        case edits.AddInput():
            return _with_input(graph, edit)
        case edits.DeleteInput(path, name):
            return _without_input(graph, path, name)
        case edits.AddOutput():
            return _with_output(graph, edit)
        case edits.DeleteOutput(path, name):
            return _without_output(graph, path, name)
        case edits.WrapNodes():
            return _with_wrapped(graph, edit)


def _editable(graph: Graph, path: str) -> Node:
    """Return the node at a path, if the file can be edited there."""
    _editable_graph(graph, _around(path))
    node = node_at(graph, path)
    if node.lock is not None:
        raise refused(f"step {path}, line {node.lock.line}", f"it cannot be edited here: {node.lock.text}")
    return node


def _editable_graph(graph: Graph, path: str) -> Graph:
    """Return the graph at a path, if nodes can be added to it and removed from it."""
    if path and (node := _editable(graph, path)).kind != "pipeline":
        fix = f"edit line {node.first} of the file" if node.first else ""
        raise refused(f"step {path}", f"the body of a {node.kind} cannot be edited here", "a pipeline", fix)
    return graph_at(graph, path)


def _around(path: str) -> str:
    return path.rpartition(".")[0]


def _refuse_name(name: str, taken: Collection[str], where: str) -> None:
    """Raise InputError if a name is invalid or taken."""
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        expected = "lower-case letters, digits and _, beginning with a letter or _, and no keyword of Python"
        raise refused(where, f"{name!r} cannot be a name", expected, "choose another name")
    if name in taken:
        raise refused(where, f"the name {name} exists", "a name that is free", "choose another name")


def _with_node(graph: Graph, edit: edits.AddNode, item: Node | None) -> Graph:
    where = f"step {edit.name}"
    if item is None:
        raise refused(where, f"the component {edit.component} does not exist", "a component of the palette")
    inner = _editable_graph(graph, edit.graph)
    _refuse_name(edit.name, _names(inner), where)
    node = rewiring.with_paths(replace(item, name=edit.name, first=0, last=0, lock=None, after=()), edit.graph)
    graph = with_graph(graph, edit.graph, replace(inner, nodes=(*inner.nodes, node)))
    for name, value in edit.inputs.items():
        graph = _with_value(graph, node.path, name, value)
    return graph


def _without_node(graph: Graph, path: str) -> Graph:
    node, around = _editable(graph, path), _around(path)
    inner = graph_at(graph, around)
    rewiring.refuse_mentions(inner, node.name, "deleted")
    others = replace(inner, nodes=tuple(each for each in inner.nodes if each is not node))
    return with_graph(graph, around, rewired(others, {}, {node.name: None}))


def _renamed(graph: Graph, path: str, name: str) -> Graph:
    node, around = _editable(graph, path), _around(path)
    if name == node.name:
        return graph
    inner = graph_at(graph, around)
    _refuse_name(name, _names(inner), f"step {path}")
    word = re.compile(rf"\b{re.escape(node.name)}\b")
    code = (value for _, value in rewiring.values(inner) if isinstance(value, Expression))
    changed = rewired(inner, {value: Expression(word.sub(name, value.text)) for value in code}, {node.name: name})

    def renamed(each: Node) -> Node:
        if each.name == node.name:
            each = rewiring.with_paths(replace(each, name=name), around)
        return replace(each, note=word.sub(name, each.note)) if each.kind in _CONTROL else each

    return with_graph(graph, around, replace(changed, nodes=tuple(map(renamed, changed.nodes))))


def _duplicated(graph: Graph, path: str, name: str) -> Graph:
    node, around = _editable(graph, path), _around(path)
    if node.kind in _CONTROL:
        found = f"a {node.kind} runs steps that a copy would run too"
        raise refused(f"step {path}", found, "", "copy its code by hand")
    inner = graph_at(graph, around)
    _refuse_name(name, _names(inner), f"step {name}")
    copy = rewiring.with_paths(replace(node, name=name, first=0, last=0), around)
    return with_graph(graph, around, replace(inner, nodes=(*inner.nodes, copy)))


def _with_value(graph: Graph, path: str, name: str, value: Value | None) -> Graph:
    node, around = _editable(graph, path), _around(path)
    where, port = f"step {path}, input {name}", _port(node.inputs, name, f"step {path}")
    if port.locked:
        raise refused(where, f"it cannot be edited here: {port.locked}")
    if value is not None:
        _refuse_value(graph_at(graph, around), port, value, where)
    inputs = tuple(replace(each, value=value) if each is port else each for each in node.inputs)
    graph = with_node(graph, path, replace(node, inputs=inputs))
    if isinstance(value, FromOutput):
        rewiring.refuse_cycle(graph_at(graph, around), where)
    return graph


_PortT = TypeVar("_PortT", Port, InputPort, OutputPort)


def _port(known: Sequence[_PortT], name: str, where: str, kind: str = "input") -> _PortT:
    for port in known:
        if port.name == name:
            return port
    expected = literals.one_of((port.name for port in known), f"none; there are no {kind}s")
    raise refused(where, f"it has no {kind} {name}", expected)


def _refuse_value(graph: Graph, port: Port, value: Value, where: str) -> None:
    """Raise InputError if a value does not fit a port of a node of the graph."""
    match value:
        case Literal(literal):
            _refuse_literal(port, literal, where)
            return
        case Expression(text):
            raise refused(where, f"{text} is code", "a value, an input or an output", "edit the file")
        case FromInput(name):
            source = f"input {name} of the pipeline"
            kind = _port(graph.inputs, name, "the pipeline").type
        case FromOutput(node, name):
            source = f"output {name} of step {node}"
            kind = _port(node_at(graph, node).outputs, name, f"step {node}", "output").type
    # azure-ai-ml sends a number to an integer, and `check` tells when that fails.
    if not fits(kind, port.type) and (kind, port.type) != ("number", "integer"):
        expected = f"a source for {article(port.type)}"
        raise refused(where, f"{source} is {article(kind)}, and the input {article(port.type)}", expected)


def _refuse_literal(port: Port, literal: str | int | float | bool | None, where: str) -> None:
    if literal is None:
        raise refused(where, "there is no value", article(port.type), "reset the input instead")
    if port.type not in ports.PRIMITIVES and not isinstance(literal, str):
        raise refused(where, f"{literal!r}", f"the path of {article(port.type)}")
    kind = port.type if port.type in ports.PRIMITIVES else "string"
    declared = ports.Input(port.name, kind, minimum=port.minimum, maximum=port.maximum, enum=tuple(port.enum))
    problems = tuple(literals.wrong(where, declared, literal, "choose another value"))
    if problems:
        raise InputError.of(problems)


def _with_layout(graph: Graph, edit: edits.SetLayout) -> Graph:
    node, where = _editable(graph, edit.node), f"step {edit.node}"
    if node.layout is None:
        raise refused(where, f"a {node.kind} has no instances and processes", "a command or a parallel step")
    count = Port("instances", "integer", minimum=1)
    for name, value in (("instances", edit.instances), ("processes", edit.processes)):
        if isinstance(value, FromOutput):
            expected = "a whole number, or an input of the pipeline"
            raise refused(f"{where}, {name}", "it is an output of a step", expected)
        _refuse_value(graph_at(graph, _around(edit.node)), count, value, f"{where}, {name}")
    if node.layout.distribution not in WITH_PROCESSES and edit.processes != Literal(1):
        found = f"the distribution is {node.layout.distribution}, which starts one process on each instance"
        raise refused(f"{where}, processes", found, "1", "choose the distribution pytorch or mpi first")
    layout = replace(node.layout, instances=edit.instances, processes=edit.processes)
    return with_node(graph, edit.node, replace(node, layout=layout))


def _with_distribution(graph: Graph, path: str, distribution: str) -> Graph:
    node, kinds = _editable(graph, path), sorted(DISTRIBUTIONS)
    if node.layout is None or node.kind not in ("command", "sweep"):
        raise refused(f"step {path}", f"a {node.kind} has no distribution", "a command")
    if distribution not in kinds:
        raise refused(f"step {path}, distribution", distribution, f"one of {', '.join(kinds)}")
    processes = node.layout.processes if distribution in WITH_PROCESSES else Literal(1)
    layout = replace(node.layout, distribution=distribution, processes=processes)
    return with_node(graph, path, replace(node, layout=layout))


def _with_input(graph: Graph, edit: edits.AddInput) -> Graph:
    inner, where = _editable_graph(graph, edit.graph), f"input {edit.name}"
    _refuse_name(edit.name, _names(inner), where)
    types = (*sorted(ports.PRIMITIVES), *sorted(DATA))
    if edit.type not in types:
        raise refused(where, f"there is no type {edit.type}", f"one of {', '.join(types)}")
    port = InputPort(
        edit.name, edit.type, default=edit.default, minimum=edit.minimum, maximum=edit.maximum, enum=edit.enum
    )
    if edit.default is not None:
        _refuse_literal(port, edit.default, where)
    return with_graph(graph, edit.graph, replace(inner, inputs=(*inner.inputs, port)))


def _without_input(graph: Graph, path: str, name: str) -> Graph:
    inner = _editable_graph(graph, path)
    port = _port(inner.inputs, name, f"step {path}" if path else "the pipeline")
    if port.locked:
        raise refused(f"input {name}", f"it cannot be edited here: {port.locked}")
    rewiring.refuse_mentions(inner, name, "deleted")
    for node in inner.nodes:
        if node.layout is not None and FromInput(name) in (node.layout.instances, node.layout.processes):
            fix = "set the layout of the step to numbers first"
            raise refused(f"input {name}", f"the layout of step {node.path} uses it", "", fix)
    others = replace(inner, inputs=tuple(each for each in inner.inputs if each is not port))
    return with_graph(graph, path, rewired(others, {FromInput(name): None}))


def _with_output(graph: Graph, edit: edits.AddOutput) -> Graph:
    inner, where = _editable_graph(graph, edit.graph), f"output {edit.name}"
    _refuse_name(edit.name, {output.name for output in inner.outputs}, where)
    value = FromOutput(edit.node, edit.port)
    port = _port(node_at(inner, edit.node).outputs, edit.port, f"step {edit.node}", "output")
    bound = next((output.name for output in inner.outputs if output.value == value), "")
    if bound:
        raise refused(where, f"output {edit.port} of step {edit.node} is output {bound} already", "one name")
    output = OutputPort(edit.name, port.type, value)
    return with_graph(graph, edit.graph, replace(inner, outputs=(*inner.outputs, output)))


def _without_output(graph: Graph, path: str, name: str) -> Graph:
    inner = _editable_graph(graph, path)
    output = _port(inner.outputs, name, f"step {path}" if path else "the pipeline", "output")
    if path:
        rewiring.refuse_mentions(graph_at(graph, _around(path)), name, "deleted")
    return with_graph(graph, path, replace(inner, outputs=tuple(each for each in inner.outputs if each is not output)))


def _with_wrapped(graph: Graph, edit: edits.WrapNodes) -> Graph:
    where, graphs = f"step {edit.name}", {_around(path) for path in edit.nodes}
    if len(graphs) != 1:
        raise refused(where, "the steps are in several pipelines, or there are none", "steps of one")
    (around,) = graphs
    names = [_editable(graph, path).name for path in edit.nodes]
    inner = graph_at(graph, around)
    _refuse_name(edit.name, _names(inner), where)
    return with_graph(graph, around, wrapped(inner, names, edit.name, around))
