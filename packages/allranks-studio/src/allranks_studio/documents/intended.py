"""The meaning of each edit: the graph that it should result in, whatever the language of the file."""

import keyword
import re
from collections.abc import Collection
from dataclasses import replace
from typing import TypeVar

from allranks.checks.plan.bindings import article, fits
from allranks.contract.distributions import DISTRIBUTIONS
from allranks.errors import InputError
from allranks.plan import literals, ports
from allranks_studio.documents import edits, rewiring
from allranks_studio.documents.canvas import Graph, InputPort, Node, OutputPort, Port
from allranks_studio.documents.edits import Edit, Expression, FromInput, FromOutput, Literal, Value
from allranks_studio.documents.rewiring import changed_graph, changed_node, graph_at, node_at, refused
from allranks_studio.documents.wrapping import wrapped

_NAME = re.compile(r"[a-z_][a-z0-9_]*")
DATA_TYPES = ("uri_folder", "uri_file", "mltable", "mlflow_model", "custom_model", "triton_model")


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
            whole = re.sub(r"[^a-z0-9_]", "_", words[-1].lower()) or "step"
            # The first word is the verb: train = train_image_classifier(...).
            first = whole.strip("_").partition("_")[0]
            short = first if first not in ("", whole) and not first[0].isdecimal() else f"{whole}_step"
            return replace(edit, name=_free(graph_at(graph, edit.graph), short, taken))
        case edits.DuplicateNode(name=""):
            around, _, name = edit.node.rpartition(".")
            return replace(edit, name=_free(graph_at(graph, around), re.sub(r"_\d+$", "", name), taken))
    return edit


def _names(graph: Graph) -> set[str]:
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
            return _with_input_value(graph, path, name, value)
        case edits.ResetInput(path, name):
            return _with_input_value(graph, path, name, None)
        case edits.SetLayout():
            return _with_layout(graph, edit)
        case edits.SetDistribution(path, distribution):
            return _with_distribution(graph, path, distribution)
        case edits.SetCompute("", _):
            return graph
        case edits.SetCompute(path, compute):
            if (kind := _editable(graph, path).kind) in _CONTROL:
                raise refused(f"step {path}", f"a {kind} has no compute", "a step that runs a component")
            return changed_node(graph, path, lambda node: replace(node, compute=compute))
        case edits.AddInput():
            return _with_input(graph, edit)
        case edits.DeleteInput(path, name):
            return _without_input(graph, path, name)
        case edits.AddOutput():
            return _with_output(graph, edit)
        case edits.DeleteOutput(path, name):
            known = [output.name for output in _editable_graph(graph, path).outputs]
            if name not in known:
                raise refused(f"output {name}", "there is no such output", f"one of {', '.join(known)}")
            if path:
                rewiring.refuse_mentions(graph_at(graph, path.rpartition(".")[0]), name, "deleted")
            return rewiring.without_outputs(graph, path, [name])
        case edits.WrapNodes():
            return _with_wrapped(graph, edit)


def _editable(graph: Graph, path: str) -> Node:
    """Return the node at a path, if the file can be edited there."""
    node = node_at(graph, path)
    _editable_graph(graph, path.rpartition(".")[0])
    if node.lock is not None:
        raise refused(f"step {path}, line {node.lock.line}", f"it cannot be edited here: {node.lock.text}")
    return node


def _editable_graph(graph: Graph, path: str) -> Graph:
    """Return the graph at a path, if nodes can be added to it and removed from it."""
    names = path.split(".") if path else []
    for depth in range(1, len(names) + 1):
        outer = ".".join(names[:depth])
        node = node_at(graph, outer)
        if node.lock is not None:
            raise refused(f"step {outer}, line {node.lock.line}", f"it cannot be edited here: {node.lock.text}")
        if node.kind != "pipeline":
            fix = f"edit line {node.first} of the file" if node.first else ""
            raise refused(f"step {outer}", f"the body of a {node.kind} cannot be edited here", "a pipeline", fix)
    return graph_at(graph, path)


def _refuse_name(graph: Graph, name: str, where: str, *, is_output: bool = False) -> None:
    """Raise InputError if a name is invalid or exists. Steps and inputs share names, which Python's variables do."""
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        expected = "lower-case letters, digits and _, beginning with a letter or _, and no keyword of Python"
        raise refused(where, f"{name!r} cannot be a name", expected, "choose another name")
    if name in ({output.name for output in graph.outputs} if is_output else _names(graph)):
        raise refused(where, f"the name {name} exists", "a name that is free", "choose another name")


def _with_node(graph: Graph, edit: edits.AddNode, item: Node | None) -> Graph:
    where = f"step {edit.name}"
    if item is None:
        raise refused(where, f"the component {edit.component} does not exist", "a component of the palette")
    inner = _editable_graph(graph, edit.graph)
    _refuse_name(inner, edit.name, where)
    node = rewiring.with_paths(replace(item, name=edit.name, first=0, last=0, lock=None, after=()), edit.graph)
    graph = changed_graph(graph, edit.graph, lambda inner: replace(inner, nodes=(*inner.nodes, node)))
    for name, value in edit.inputs.items():
        graph = _with_input_value(graph, node.path, name, value)
    return graph


def _without_node(graph: Graph, path: str) -> Graph:
    _editable(graph, path)
    around, _, name = path.rpartition(".")
    rewiring.refuse_mentions(graph_at(graph, around), name, "deleted")

    def without(inner: Graph) -> Graph:
        others = (node for node in inner.nodes if node.name != name)
        return replace(
            inner, nodes=tuple(replace(n, after=tuple(each for each in n.after if each != name)) for n in others)
        )

    graph = changed_graph(graph, around, without)
    return rewiring.disconnected(graph, around, lambda value: isinstance(value, FromOutput) and value.node == name)


def _renamed(graph: Graph, path: str, name: str) -> Graph:
    node = _editable(graph, path)
    around, _, old = path.rpartition(".")
    if name == old:
        return graph
    _refuse_name(graph_at(graph, around), name, f"step {path}")
    word = re.compile(rf"\b{re.escape(old)}\b")

    def followed(value: Value) -> Value:
        if isinstance(value, FromOutput) and value.node == old:
            return replace(value, node=name)
        return Expression(word.sub(name, value.text)) if isinstance(value, Expression) else value

    def renamed(each: Node) -> Node:
        after = tuple(name if other == old else other for other in each.after)
        note = word.sub(name, each.note) if each.kind in _CONTROL else each.note
        each = replace(rewiring.with_values(each, followed), after=after, note=note)
        return rewiring.with_paths(replace(each, name=name), around) if each.name == node.name else each

    def changed(inner: Graph) -> Graph:
        outputs = tuple(replace(output, value=followed(output.value)) for output in inner.outputs)
        return replace(inner, nodes=tuple(map(renamed, inner.nodes)), outputs=outputs)

    return changed_graph(graph, around, changed)


def _duplicated(graph: Graph, path: str, name: str) -> Graph:
    node, around = _editable(graph, path), path.rpartition(".")[0]
    if node.kind in _CONTROL:
        raise refused(
            f"step {path}", f"a {node.kind} runs steps that a copy would run too", "", "copy its code by hand"
        )
    _refuse_name(graph_at(graph, around), name, f"step {name}")
    copy = rewiring.with_paths(replace(node, name=name, first=0, last=0), around)
    return changed_graph(graph, around, lambda inner: replace(inner, nodes=(*inner.nodes, copy)))


def _with_input_value(graph: Graph, path: str, name: str, value: Value | None) -> Graph:
    node, around = _editable(graph, path), path.rpartition(".")[0]
    where, port = f"step {path}, input {name}", _port(node.inputs, name, f"step {path}")
    if port.locked:
        raise refused(where, f"it cannot be edited here: {port.locked}")
    if value is not None:
        _refuse_value(graph_at(graph, around), port, value, where)

    def changed(node: Node) -> Node:
        inputs = tuple(replace(each, value=value) if each.name == name else each for each in node.inputs)
        return replace(node, inputs=inputs)

    graph = changed_node(graph, path, changed)
    if isinstance(value, FromOutput):
        rewiring.refuse_cycle(graph_at(graph, around), where)
    return graph


_PortT = TypeVar("_PortT", bound=Port)


def _port(known: tuple[_PortT, ...], name: str, where: str, kind: str = "input") -> _PortT:
    for port in known:
        if port.name == name:
            return port
    names = ", ".join(port.name for port in known)
    raise refused(where, f"it has no {kind} {name}", f"one of {names}" if names else f"the step has no {kind}s")


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
    inner = graph_at(graph, edit.node.rpartition(".")[0])
    for name, value in (("instances", edit.instances), ("processes", edit.processes)):
        if isinstance(value, FromOutput):
            raise refused(
                f"{where}, {name}", "it is an output of a step", "a whole number, or an input of the pipeline"
            )
        _refuse_value(inner, count, value, f"{where}, {name}")
    if node.layout.distribution not in _WITH_PROCESSES and edit.processes != Literal(1):
        found = f"the distribution is {node.layout.distribution}, which starts one process on each instance"
        raise refused(f"{where}, processes", found, "1", "choose the distribution pytorch or mpi first")
    layout = replace(node.layout, instances=edit.instances, processes=edit.processes)
    return changed_node(graph, edit.node, lambda node: replace(node, layout=layout))


_WITH_PROCESSES = ("pytorch", "mpi")


def _with_distribution(graph: Graph, path: str, distribution: str) -> Graph:
    node, kinds = _editable(graph, path), sorted(DISTRIBUTIONS)
    if node.layout is None or node.kind not in ("command", "sweep"):
        raise refused(f"step {path}", f"a {node.kind} has no distribution", "a command")
    if distribution not in kinds:
        raise refused(f"step {path}, distribution", distribution, f"one of {', '.join(kinds)}")
    processes = node.layout.processes if distribution in _WITH_PROCESSES else Literal(1)
    layout = replace(node.layout, distribution=distribution, processes=processes)
    return changed_node(graph, path, lambda node: replace(node, layout=layout))


def _with_input(graph: Graph, edit: edits.AddInput) -> Graph:
    where = f"input {edit.name}"
    _refuse_name(_editable_graph(graph, edit.graph), edit.name, where)
    types = (*sorted(ports.PRIMITIVES), *DATA_TYPES)
    if edit.type not in types:
        raise refused(where, f"there is no type {edit.type}", f"one of {', '.join(types)}")
    port = InputPort(edit.name, edit.type, default=edit.default)
    if edit.default is not None:
        _refuse_literal(port, edit.default, where)
    graph = changed_graph(graph, edit.graph, lambda inner: replace(inner, inputs=(*inner.inputs, port)))
    if not edit.graph:
        return graph
    return changed_node(graph, edit.graph, lambda node: replace(node, inputs=(*node.inputs, port)))


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

    def without(owner: Graph) -> Graph:
        return replace(owner, inputs=tuple(each for each in owner.inputs if each.name != name))

    graph = rewiring.disconnected(changed_graph(graph, path, without), path, lambda value: value == FromInput(name))
    if not path:
        return graph
    return changed_node(graph, path, lambda node: replace(node, inputs=tuple(p for p in node.inputs if p.name != name)))


def _with_output(graph: Graph, edit: edits.AddOutput) -> Graph:
    inner, where = _editable_graph(graph, edit.graph), f"output {edit.name}"
    _refuse_name(inner, edit.name, where, is_output=True)
    node, value = node_at(inner, edit.node), FromOutput(edit.node, edit.port)
    port = _port(node.outputs, edit.port, f"step {edit.node}", "output")
    bound = next((output.name for output in inner.outputs if output.value == value), "")
    if bound:
        raise refused(where, f"output {edit.port} of step {edit.node} is output {bound} already", "one name")
    output = OutputPort(edit.name, port.type, value)
    graph = changed_graph(graph, edit.graph, lambda inner: replace(inner, outputs=(*inner.outputs, output)))
    if not edit.graph:
        return graph
    outer = Port(edit.name, port.type)
    return changed_node(graph, edit.graph, lambda node: replace(node, outputs=(*node.outputs, outer)))


def _with_wrapped(graph: Graph, edit: edits.WrapNodes) -> Graph:
    graphs = {path.rpartition(".")[0] for path in edit.nodes}
    if len(graphs) != 1:
        raise refused(f"step {edit.name}", "the steps are in several pipelines, or there are none", "steps of one")
    (around,) = graphs
    for path in edit.nodes:
        _editable(graph, path)
    _refuse_name(graph_at(graph, around), edit.name, f"step {edit.name}")
    names = [path.rpartition(".")[2] for path in edit.nodes]
    return changed_graph(graph, around, lambda inner: wrapped(inner, names, edit.name, around))
