"""Random edits of pipelines, and what must hold after each: for tests of both languages."""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import strategies as st

from allranks.contract.templating import PRIMITIVES
from allranks.errors import InputError
from allranks_studio.documents import edits
from allranks_studio.documents.canvas import Graph, InputPort, Node, Port
from allranks_studio.documents.comparison import difference
from allranks_studio.documents.document import Document, Refused, language_of
from allranks_studio.documents.edits import Edit, FromInput, FromOutput, Literal, Value
from allranks_studio.documents.intended import intended, named
from allranks_studio.documents.placing import placed
from allranks_studio.documents.reading import Reader, Reading
from allranks_studio.documents.source import Outline

Draw = Callable[[st.SearchStrategy[Any]], Any]
T = TypeVar("T")

TEXTS = ("plain", "it's", 'say "hi"', "no", "1e-5", "0x1F", "schön – gut", "a: b # c", "{x}", "%d", "\\n", "- a", "~")
PATHS = ("./data", "data/a b", "azureml://datastores/blob/paths/images")
NAMES = ("alpha", "beta_2", "train", "gamma", "model", "prepare", "seed", "Bad-1", "class")


def pick(draw: Draw, choices: Sequence[T]) -> T:
    """Return one of the choices. Hypothesis draws its number, which is shorter to print than a node."""
    return choices[draw(st.integers(0, len(choices) - 1))]


def graphs(graph: Graph, path: str = "") -> Iterator[tuple[str, Graph]]:
    """Yield the graphs that can be edited, by path."""
    yield path, graph
    for node in graph.nodes:
        if node.graph is not None and node.lock is None and node.kind == "pipeline":
            yield from graphs(node.graph, node.path)


def an_edit(draw: Draw, graph: Graph, items: Mapping[str, Node]) -> Edit:
    """Return a random edit, most of which are possible. items: components as nodes, by their names in the palette"""
    around, inner = pick(draw, ([*graphs(graph)]))
    nodes, inputs = inner.nodes, inner.inputs
    ops = ["add_node", "add_node", "add_input"]
    if nodes:
        ops += ["set_input"] * 4 + ["reset_input", "rename", "duplicate", "delete", "layout", "distribution", "compute"]
        ops += ["add_output", "wrap"]
    ops += ["delete_input"] * bool(inputs) + ["delete_output"] * bool(inner.outputs)
    op = pick(draw, (ops))
    name = pick(draw, (NAMES))
    node = pick(draw, (nodes)) if nodes else None
    if op == "add_node" or (node is None and op not in ("add_input", "delete_input", "delete_output")):
        component = pick(draw, (sorted(items)))
        bound = {port.name: a_value(draw, inner, port) for port in items[component].inputs[:2] if draw(st.booleans())}
        return edits.AddNode(around, component, pick(draw, (("", name))), _without(bound))
    if op == "add_input":
        port = Port(name, pick(draw, (("integer", "number", "string", "boolean"))))
        return edits.AddInput(around, name, port.type, a_literal(draw, port).value)
    if op == "delete_input":
        return edits.DeleteInput(around, pick(draw, (inputs)).name)
    if op == "delete_output":
        return edits.DeleteOutput(around, pick(draw, (inner.outputs)).name)
    assert node is not None
    if op in ("set_input", "reset_input") and node.inputs:
        port = pick(draw, (node.inputs))
        value = a_value(draw, inner, port) if op == "set_input" else None
        return edits.ResetInput(node.path, port.name) if value is None else edits.SetInput(node.path, port.name, value)
    if op == "duplicate":
        return edits.DuplicateNode(node.path, pick(draw, (("", name))))
    if op == "delete":
        return edits.DeleteNode(node.path)
    if op == "layout":
        counts: list[Value] = [
            Literal(draw(st.integers(1, 4))),
            *(FromInput(p.name) for p in inputs if p.type == "integer"),
        ]
        return edits.SetLayout(node.path, pick(draw, (counts)), pick(draw, (counts)))
    if op == "distribution":
        return edits.SetDistribution(node.path, pick(draw, (("pytorch", "mpi", "none"))))
    if op == "compute":
        return edits.SetCompute(pick(draw, ((node.path, ""))), pick(draw, (("cluster", "gpu-big", ""))))
    if op == "add_output" and node.outputs:
        return edits.AddOutput(around, name, node.name, pick(draw, (node.outputs)).name)
    if op == "wrap":
        chosen = {pick(draw, nodes).name: None for _ in range(3)}
        return edits.WrapNodes(tuple(f"{around}.{each}".lstrip(".") for each in chosen), name)
    return edits.RenameNode(node.path, name)


def a_value(draw: Draw, graph: Graph, port: Port) -> Value | None:
    """Return a value for a port, or None to set nothing."""
    values: list[Value] = [FromInput(each.name) for each in graph.inputs if each.type == port.type]
    values += [
        FromOutput(node.name, each.name) for node in graph.nodes for each in node.outputs if each.type == port.type
    ]
    literal = a_literal(draw, port)
    return pick(draw, ([*values, literal, literal] if literal.value is not None else [*values, None]))


def a_literal(draw: Draw, port: Port) -> Literal:
    if port.type not in PRIMITIVES:
        return Literal(pick(draw, (PATHS)))
    if port.enum:
        return Literal(pick(draw, (port.enum)))
    low, high = port.minimum, port.maximum
    if port.type == "integer":
        return Literal(draw(st.integers(int(low) if low is not None else 0, int(high) if high is not None else 10**6)))
    if port.type == "number":
        bounds = (low if low is not None else -1e3, high if high is not None else 1e6)
        return Literal(pick(draw, ([float(bounds[0]), float(bounds[1]), *([1e-05] if bounds[0] <= 1e-05 else [])])))
    return Literal(draw(st.booleans()) if port.type == "boolean" else pick(draw, TEXTS))


def _without(values: Mapping[str, Value | None]) -> dict[str, Value]:
    return {name: value for name, value in values.items() if value is not None}


class Named(dict[str, T]):
    """A dictionary that is short to print."""

    def __repr__(self) -> str:
        return f"<{len(self)} entries>"


class Outlined:
    """A text whose edits are compared with its outline, without azure-ai-ml. done: the edits that were possible"""

    def __init__(self, path: Path, text: str, graph: Graph, items: Mapping[str, Node]) -> None:
        self.path, self.text, self.items = path, text, items
        self.language = language_of(path)
        self.graph = graph
        self.done: list[Edit] = []
        self.outline = self.language.outline(text)
        # Code whose step has another name when it runs, and code that is locked.
        self.unknown = {*difference(graph, outlined(graph, self.outline))}
        others = [node.name for _, each in graphs(graph) for node in each.nodes if _is_unnamed(node, self.outline)]
        self.other_names = re.compile(rf"\b({'|'.join(others)})\b" if others else "(?!)")

    def edit(self, edit: Edit) -> None:
        """Make an edit if it is possible."""
        try:
            edit = named(self.graph, edit, self.outline.taken)
            item = self.items[edit.component] if isinstance(edit, edits.AddNode) else None
            graph = intended(self.graph, edit, item)
            after = self.language.edited(self.text, edit, self.graph, self.path)
        except InputError:
            return
        self.done.append(edit)
        told = f"{self.path}: {self.done}\n{after}"
        outline = self.language.outline(after)
        lines = {*difference(graph, outlined(graph, outline))} - self.unknown
        lines = {each for each in lines if self.other_names.search(each) is None}
        assert not lines, f"{lines}: {told}"
        self.refuse_other_changes(edit, graph, after, outline, told)
        graph = _moved(graph, self.text, after)
        self.text, self.graph, self.outline = after, placed(graph, outline), outline

    def refuse_other_changes(self, edit: Edit, graph: Graph, after: str, outline: Outline, told: str) -> None:
        """Assert that the text of each node that means the same as before is the same."""
        if re.search(r"^ *jobs: {", self.text, re.MULTILINE):
            return  # steps share lines
        before = self.outline
        is_used = isinstance(edit, (edits.RenameNode, edits.DeleteNode))
        renamed = rf"\b{edit.node}\b" if is_used else r"(?!)"  # also as an input that no component declares
        ours, theirs = (dict(_meanings(each)) for each in (self.graph, graph))
        for path in ours.keys() & theirs.keys() & before.nodes.keys() & outline.nodes.keys():
            text = "\n".join(_lines(self.text, before, path))
            is_other = "." not in path and path != getattr(edit, "node", "") and not re.search(renamed, text)
            if ours[path] == theirs[path] and is_other:
                assert _lines(self.text, before, path) == _lines(after, outline, path), f"{path}: {told}"


def _moved(graph: Graph, before: str, after: str) -> Graph:
    """Return the graph with the lines of its nodes in the edited text."""
    changes = SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False).get_opcodes()

    def line(number: int) -> int:
        above = (change for change in changes if change[1] < number)
        return number + sum(end - start - (last - first) for _, first, last, start, end in above if last < number)

    def node(each: Node) -> Node:
        inner = each.graph and replace(each.graph, nodes=tuple(map(node, each.graph.nodes)))
        return replace(each, first=line(each.first), last=line(each.last), graph=inner)

    return replace(graph, nodes=tuple(map(node, graph.nodes)))


def _meanings(graph: Graph) -> Iterator[tuple[str, Any]]:
    for node in graph.nodes:
        values = tuple((port.name, port.value) for port in node.inputs)
        outputs = tuple(output for output in graph.outputs if _names(output.value, node.name))
        yield node.path, (values, [(each.name, each.value) for each in outputs], node.layout, node.compute, node.graph)


def _names(value: Value, node: str) -> bool:
    return isinstance(value, FromOutput) and value.node == node


def _lines(text: str, outline: Outline, path: str) -> list[str]:
    place = outline.nodes[path]
    return re.split(r"\r\n|[\r\n]", text)[place.first - 1 : place.last]


def outlined(graph: Graph, outline: Outline, path: str = "") -> Graph:
    """Return a graph with the nodes and the values that an outline has, as far as it knows them."""
    prefix = f"{path}." if path else ""
    known = [node for node in graph.nodes if _is_outlined(node, outline)]
    others = [node for node in graph.nodes if node.lock is not None or _is_unnamed(node, outline)]
    nodes = [_node(node, outline) for node in known if node not in others]
    names = {node.path for node in graph.nodes}
    extra = [
        Node(each, each.removeprefix(prefix), "command")
        for each, place in outline.nodes.items()
        if each.startswith(prefix) and "." not in each[len(prefix) :] and each not in names
        if place.lock is None and "@" not in each
    ]
    inputs = {name: place.value for (around, name), place in outline.inputs.items() if around == path}
    outputs = {name: place.value for (around, name), place in outline.outputs.items() if around == path}
    return replace(
        graph,
        nodes=(*nodes, *others, *extra),
        inputs=tuple(_port(port, inputs) for port in graph.inputs if port.name in inputs),
        outputs=tuple(replace(each, value=outputs[each.name]) for each in graph.outputs if each.name in outputs),
    )


def _is_outlined(node: Node, outline: Outline) -> bool:
    return node.path in outline.nodes


def _is_unnamed(node: Node, outline: Outline) -> bool:
    """Return whether the outline knows a node by its line only."""
    return node.path not in outline.nodes and any("@" in each for each in outline.nodes)


def _node(node: Node, outline: Outline) -> Node:
    place = outline.nodes[node.path]
    if place.lock is not None:
        return node
    values = {name: each.value for name, each in place.inputs.items() if each.lock is None}
    locked = {name for name, each in place.inputs.items() if each.lock is not None}
    inputs = tuple(port if port.name in locked or port.locked else _port(port, values, None) for port in node.inputs)
    graph = node.graph
    if graph is not None and any(path.startswith(f"{node.path}.") for path in outline.nodes):
        graph = outlined(graph, outline, node.path)
    return replace(node, inputs=inputs, graph=graph)


def _port(port: InputPort, values: Mapping[str, Value], otherwise: Value | None = None) -> InputPort:
    return replace(port, value=values.get(port.name, otherwise))


def overlay(root: Path, file: str, folder: Path) -> Path:
    """Copy a file to a folder of links to the files around it, up to its root, and return the folder."""
    place, source = folder, root
    for part in (*Path(file).parts, ""):
        place.mkdir(exist_ok=True)
        for each in source.iterdir():
            if each.name == part and (root / file) != each:
                continue
            if (root / file) == each:
                shutil.copyfile(each, place / part)
            elif not (place / each.name).exists():
                (place / each.name).symlink_to(each)
        if (root / file) == source / part:
            break
        place, source = place / part, source / part
    return folder


class Written:
    """A file that is edited as a document: azure-ai-ml reads what was written."""

    def __init__(self, folder: Path, path: str, reader: Reader) -> None:
        self.document = Document(folder, path, reader)
        self.file = folder / path
        self.first = self.file.read_bytes()

    def edit(self, changes: Sequence[Edit]) -> str:
        """Make edits that the outline allows, undo them, and return why they were refused; "" if they were made.

        Only a text that azure-ai-ml refuses may be refused, with its reason. Nothing is written then.
        """
        refused, difference = "", list[str]()
        try:
            self.document.edit(self.document.digest, changes)
        except InputError as error:
            refused = str(error)
        except Refused as error:
            refused, difference = str(error), error.difference
        told = f"{self.file}: {changes}: {refused}"
        assert not difference, f"{difference} {told}"
        # A function of the user's or the SDK's may need an argument that was disconnected.
        broken = r"\b(Name|Type|Attribute|Syntax|Unbound\w*)Error: (?!.*missing \d+ required)"
        assert re.search(broken, refused) is None, told
        if refused:
            assert self.file.read_bytes() == self.first, told
        else:
            assert self.document.state()["current"], told
            assert b"\r\n" not in self.first or b"\n" not in self.file.read_bytes().replace(b"\r\n", b""), told
        while self.document.state()["undo"]:
            self.document.undo(self.document.digest)
        assert self.file.read_bytes() == self.first, told
        return refused


class CachedReader(Reader):
    """A reader that reads each text once: undoing edits reads the first text again."""

    def __init__(self) -> None:
        super().__init__()
        self.readings: dict[tuple[Path, bytes], Reading] = {}

    def read(self, path: Path, text: bytes, folder: Path | None = None) -> Reading:
        if (path, text) not in self.readings:
            self.readings[path, text] = super().read(path, text, folder)
        return self.readings[path, text]


EXAMPLES = os.environ.get("ALLRANKS_EXAMPLES", "")
"""A checkout of Azure/azureml-examples."""


def public_pipelines() -> Iterator[str]:
    """Yield the pipelines of the checkout: YAML, and notebooks."""
    kinds = {"*.y*ml": r"^type: *[\"']?pipeline", "*.ipynb": r"\"@(dsl\.)?pipeline\b"}
    for suffix, pattern in kinds.items() if EXAMPLES else ():
        for file in sorted(Path(EXAMPLES).rglob(suffix)):
            if re.search(pattern, file.read_text(errors="replace"), re.MULTILINE):
                yield str(file.relative_to(EXAMPLES))


def code_of(notebook: Path) -> str:
    """Return the code of a notebook as a Python file, without its commands for the shell."""
    cells = [cell["source"] for cell in json.loads(notebook.read_text())["cells"] if cell["cell_type"] == "code"]
    text = "\n\n".join("".join(cell) if isinstance(cell, list) else cell for cell in cells)
    return re.sub(r"^([ \t]*)(?=[%!])", r"\1pass  # ", text, flags=re.MULTILINE) + "\n"


def opened_copy(root: Path, name: str, folder: Path, reader: Reader) -> Document:
    """Open a copy of a file in a folder of links to the files around it. A notebook becomes a Python file."""
    overlay(root, name, folder)
    if name.endswith(".ipynb"):
        notebook = folder / name  # which runs in its folder
        folder, name = notebook.parent, f"{notebook.stem}.py"
        (folder / name).write_text(code_of(notebook))
    if name.endswith("flow.yml"):  # Git does not keep these line ends
        (folder / name).write_bytes((root / name).read_bytes().replace(b"\n", b"\r\n"))
    return Document(folder, name, reader)
