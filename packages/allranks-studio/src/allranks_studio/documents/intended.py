"""The meaning of each edit: the graph that it should result in, whatever the language of the file.

Whether values fit their ports is found by `check` when the text is read."""

import keyword
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain, count
from typing import TypeVar

from allranks.contract.distributions import DISTRIBUTIONS
from allranks.plan.literals import one_of
from allranks_studio.documents import edits, rewiring
from allranks_studio.documents.canvas import WITH_PROCESSES, Graph, InputPort, Node, OutputPort, Port
from allranks_studio.documents.edits import Edit, Expression, FromInput, FromOutput, Literal
from allranks_studio.documents.rewiring import graph_at, node_at, parent_of, refused, rewired, with_graph
from allranks_studio.documents.wrapping import wrapped

_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_CONTROL = ("condition", "do_while", "parallel_for")


def named(graph: Graph, edit: Edit, taken: Collection[str] = ()) -> Edit:
    """Return the edit with a name for its new node, if it has none. taken: further names that are not free

    Document applies this before both `intended` and the patches, so that they use the same name.
    """
    if not isinstance(edit, (edits.AddNode, edits.DuplicateNode)) or edit.name:
        return edit
    if isinstance(edit, edits.AddNode):
        base = _verb(edit.component)
    else:
        base = re.sub(r"_\d+$", "", edit.node.rpartition(".")[2])
    names = {*taken, *keyword.kwlist, *_names(graph_at(graph, _around(edit)))}
    choices = chain([base], (f"{base}_{number}" for number in count(2)))
    return replace(edit, name=next(name for name in choices if name not in names))


def _verb(component: str) -> str:
    """Return the first word of a component's name, which is the verb: train = train_image_classifier(...)."""
    origin, *names = re.split(r"[:/@]", re.sub(r"\.ya?ml$", "", component))
    names = names[:1] if origin == "registered" else [name for name in names if name not in ("component", "spec")]
    whole = re.sub(r"[^a-z0-9_]", "_", "".join(names[-1:]).lower()) or "step"
    first = whole.strip("_").partition("_")[0]
    name = first if first not in ("", whole) and not first[0].isdecimal() else f"{whole}_step"
    return name if _NAME.match(name) else f"_{name}"


def _names(graph: Graph) -> set[str]:
    """Return the names of steps and inputs, which Python's variables share."""
    return {node.name for node in graph.nodes} | {port.name for port in graph.inputs}


def intended(graph: Graph, edit: Edit, made: Node | None = None) -> Graph:
    """Return the graph that an edit should result in, also in other steps of the same nested pipeline.

    edit: with the names of new nodes (`named`)
    made: the node with the component that results, of an added one or of a distribution; None before it is known

    Raise InputError if the edit is impossible.
    """
    around, inner = _around(edit), graph
    for name in around.split(".") if around else ():
        node = _editable(inner, name)
        if node.kind != "pipeline":
            fix = f"edit line {node.first} of the file" if node.first else ""
            raise refused(f"step {node.path}", f"the body of a {node.kind} cannot be edited here", "a pipeline", fix)
        inner = graph_at(inner, name)
    with_made = (made,) if isinstance(edit, (edits.AddNode, edits.SetDistribution)) else ()
    return with_graph(graph, around, _CHANGES[type(edit)](inner, edit, *with_made))


def _around(edit: Edit) -> str:
    """Return the path of the graph that an edit changes."""
    match edit:
        case edits.AddNode() | edits.AddInput() | edits.DeleteInput() | edits.AddOutput() | edits.DeleteOutput():
            return edit.graph
        case edits.WrapNodes(nodes):
            return parent_of((*nodes, "")[0])
    return parent_of(edit.node)


def _editable(graph: Graph, path: str) -> Node:
    """Return the node of a graph that has the last name of a path. Raise InputError if it is locked."""
    node = node_at(graph, path.rpartition(".")[2])
    if node.lock is not None:
        raise refused(f"step {node.path}, line {node.lock.line}", f"it cannot be edited here: {node.lock.text}")
    return node


def _refuse_name(name: str, taken: Collection[str], where: str) -> None:
    """Raise InputError if a name is invalid or taken."""
    if not _NAME.fullmatch(name) or keyword.iskeyword(name):
        expected = "lower-case letters, digits and _, beginning with a letter or _, and no keyword of Python"
        raise refused(where, f"{name!r} cannot be a name", expected, "choose another name")
    if name in taken:
        raise refused(where, f"the name {name} exists", "a name that is free", "choose another name")


def _replaced(graph: Graph, node: Node) -> Graph:
    """Return a graph with another node of the same name."""
    return replace(graph, nodes=tuple(node if each.name == node.name else each for each in graph.nodes))


def _with_node(graph: Graph, edit: edits.AddNode, made: Node | None) -> Graph:
    _refuse_name(edit.name, _names(graph), f"step {edit.name}")
    if made is None:
        return graph
    inputs = tuple(replace(port, value=None, line=0, locked="") for port in made.inputs)
    node = replace(made, name=edit.name, inputs=inputs, first=0, last=0, lock=None, after=())
    graph = replace(graph, nodes=(*graph.nodes, node))
    for name, value in edit.inputs.items():
        graph = _with_value(graph, edits.SetInput(edit.name, name, value))
    return graph


def _without_node(graph: Graph, edit: edits.DeleteNode) -> Graph:
    node = _editable(graph, edit.node)
    others = tuple(each for each in graph.nodes if each is not node)
    return rewired(replace(graph, nodes=others), {}, {node.name: None})


def _renamed(graph: Graph, edit: edits.RenameNode) -> Graph:
    node, name = _editable(graph, edit.node), edit.name
    if name == node.name:
        return graph
    _refuse_name(name, _names(graph), f"step {edit.node}")
    word = re.compile(rf"\b{re.escape(node.name)}\b")
    code = (value for _, value in rewiring.values(graph) if isinstance(value, Expression))
    changed = rewired(graph, {value: Expression(word.sub(name, value.text)) for value in code}, {node.name: name})
    nodes = (replace(each, note=word.sub(name, each.note)) if each.kind in _CONTROL else each for each in changed.nodes)
    nodes = (replace(each, name=name) if each.name == node.name else each for each in nodes)
    return replace(changed, nodes=tuple(nodes))


def _duplicated(graph: Graph, edit: edits.DuplicateNode) -> Graph:
    node = _editable(graph, edit.node)
    if node.kind in _CONTROL:
        found = f"a {node.kind} runs steps that a copy would run too"
        raise refused(f"step {edit.node}", found, "", "copy its code by hand")
    _refuse_name(edit.name, _names(graph), f"step {edit.name}")
    return replace(graph, nodes=(*graph.nodes, replace(node, name=edit.name, first=0, last=0)))


def _with_value(graph: Graph, edit: edits.SetInput | edits.ResetInput) -> Graph:
    node, value = _editable(graph, edit.node), edit.value if isinstance(edit, edits.SetInput) else None
    where, port = f"step {edit.node}, input {edit.input}", _port(node.inputs, edit.input, f"step {edit.node}")
    if port.locked:
        raise refused(where, f"it cannot be edited here: {port.locked}")
    if isinstance(value, Expression):
        raise refused(where, f"{value.text} is code", "a value, an input or an output", "edit the file")
    inputs = tuple(replace(each, value=value) if each is port else each for each in node.inputs)
    graph = _replaced(graph, replace(node, inputs=inputs))
    if isinstance(value, FromOutput):
        rewiring.refuse_cycle(graph, where)
    return graph


_PortT = TypeVar("_PortT", Port, InputPort, OutputPort)


def _port(known: Sequence[_PortT], name: str, where: str, kind: str = "input") -> _PortT:
    for port in known:
        if port.name == name:
            return port
    expected = one_of((port.name for port in known), f"none; there are no {kind}s")
    raise refused(where, f"it has no {kind} {name}", expected)


def _with_layout(graph: Graph, edit: edits.SetLayout) -> Graph:
    node, where = _editable(graph, edit.node), f"step {edit.node}"
    if node.layout is None:
        raise refused(where, f"a {node.kind} has no instances and processes", "a command or a parallel step")
    if node.layout.distribution not in WITH_PROCESSES and edit.processes != Literal(1):
        found = f"the distribution is {node.layout.distribution}, which starts one process on each instance"
        raise refused(f"{where}, processes", found, "1", "choose the distribution pytorch or mpi first")
    layout = replace(node.layout, instances=edit.instances, processes=edit.processes)
    return _replaced(graph, replace(node, layout=layout))


def _with_distribution(graph: Graph, edit: edits.SetDistribution, made: Node | None) -> Graph:
    node, kinds = _editable(graph, edit.node), sorted(DISTRIBUTIONS)
    if node.layout is None or node.kind not in ("command", "sweep"):
        raise refused(f"step {edit.node}", f"a {node.kind} has no distribution", "a command")
    if edit.distribution not in kinds:
        raise refused(f"step {edit.node}, distribution", edit.distribution, f"one of {', '.join(kinds)}")
    processes = node.layout.processes if edit.distribution in WITH_PROCESSES else Literal(1)
    layout = replace(node.layout, distribution=edit.distribution, processes=processes)
    return _replaced(graph, replace(node, layout=layout, component=(made or node).component))


def _with_compute(graph: Graph, edit: edits.SetCompute) -> Graph:
    if not edit.node:  # the default, which the graph does not have
        return graph
    node = _editable(graph, edit.node)
    if node.kind in _CONTROL:
        raise refused(f"step {edit.node}", f"a {node.kind} has no compute", "a step that runs a component")
    return _replaced(graph, replace(node, compute=edit.compute))


def _with_input(graph: Graph, edit: edits.AddInput) -> Graph:
    _refuse_name(edit.name, _names(graph), f"input {edit.name}")
    port = InputPort(
        edit.name, edit.type, default=edit.default, minimum=edit.minimum, maximum=edit.maximum, enum=edit.enum
    )
    return replace(graph, inputs=(*graph.inputs, port))


def _without_input(graph: Graph, edit: edits.DeleteInput) -> Graph:
    where, port = f"input {edit.name}", _port(graph.inputs, edit.name, "the pipeline")
    if port.locked:
        raise refused(where, f"it cannot be edited here: {port.locked}")
    others = tuple(each for each in graph.inputs if each is not port)
    return rewired(replace(graph, inputs=others), {FromInput(edit.name): None})


def _with_output(graph: Graph, edit: edits.AddOutput) -> Graph:
    where, value = f"output {edit.name}", FromOutput(edit.node, edit.port)
    _refuse_name(edit.name, {output.name for output in graph.outputs}, where)
    port = _port(_editable(graph, edit.node).outputs, edit.port, f"step {edit.node}", "output")
    bound = next((output.name for output in graph.outputs if output.value == value), "")
    if bound:
        raise refused(where, f"output {edit.port} of step {edit.node} is output {bound} already", "one name")
    return replace(graph, outputs=(*graph.outputs, OutputPort(edit.name, port.type, value)))


def _without_output(graph: Graph, edit: edits.DeleteOutput) -> Graph:
    output = _port(graph.outputs, edit.name, "the pipeline", "output")
    return replace(graph, outputs=tuple(each for each in graph.outputs if each is not output))


def _with_wrapped(graph: Graph, edit: edits.WrapNodes) -> Graph:
    where = f"step {edit.name}"
    if len({parent_of(path) for path in edit.nodes}) != 1:
        raise refused(where, "the steps are in several pipelines, or there are none", "steps of one")
    names = [_editable(graph, path).name for path in edit.nodes]
    _refuse_name(edit.name, _names(graph), where)
    return wrapped(graph, names, edit.name)


_CHANGES: Mapping[type, Callable[..., Graph]] = {
    edits.AddNode: _with_node,
    edits.DeleteNode: _without_node,
    edits.RenameNode: _renamed,
    edits.DuplicateNode: _duplicated,
    edits.SetInput: _with_value,
    edits.ResetInput: _with_value,
    edits.SetLayout: _with_layout,
    edits.SetDistribution: _with_distribution,
    edits.SetCompute: _with_compute,
    edits.AddInput: _with_input,
    edits.DeleteInput: _without_input,
    edits.AddOutput: _with_output,
    edits.DeleteOutput: _without_output,
    edits.WrapNodes: _with_wrapped,
}
