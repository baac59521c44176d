"""Find the steps, inputs and outputs of a pipeline in its YAML."""

import re
from collections.abc import Iterator

import yaml

from allranks.sdk import bounded_yaml
from allranks_studio.documents.canvas import Lock
from allranks_studio.documents.edits import Expression, FromInput, FromOutput, Literal, Value
from allranks_studio.documents.source import NodePlace, Outline, ValuePlace
from allranks_studio.documents.yaml_text import Item, YamlText

_INPUT = re.compile(r"\$\{\{\s*parent\.inputs\.([\w.\-]+)\s*}}")
_NODE_OUTPUT = re.compile(r"\$\{\{\s*parent\.jobs\.([\w\-]+)\.outputs\.([\w\-]+)\s*}}")
_GRAPH_OUTPUT = re.compile(r"\$\{\{\s*parent\.outputs\.([\w\-]+)\s*}}")
_HELD = ("path", "value", "default")
"""Keys of an input or an output with the value, beside its type and mode."""


def outline_of(text: YamlText) -> Outline:
    """Return the places in a pipeline. In another job, there is one step, which is locked."""
    jobs = text.value("jobs")
    if jobs is None:
        lock = Lock("unsupported", "The file contains no pipeline with steps; edit its text.", 1)
        return Outline({"@1": NodePlace(1, text.text.count("\n") + 1, lock)})
    steps = [item for item in pairs(jobs) if isinstance(item[1], yaml.MappingNode)]
    bound = {
        name: ValuePlace(FromOutput(key.value, port), line)
        for key, step in steps
        for port, name, line in bound_outputs(text, step)
    }
    for key, value in pairs(text.value("outputs")):
        if isinstance(source := value_of(held(text, value)), FromOutput):
            bound[key.value] = ValuePlace(source, key.start_mark.line + 1)
    return Outline(
        {item[0].value: _step(text, item) for item in steps},
        {("", key.value): _place(text, (key, value)) for key, value in pairs(text.value("inputs"))},
        {("", name): place for name, place in bound.items()},
    )


def pairs(node: yaml.Node | None) -> list[Item]:
    """Return the keys and values of a mapping; none of anything else, such as a key without a value."""
    return [pair for pair in node.value if pair[0].tag.endswith(":str")] if isinstance(node, yaml.MappingNode) else []


def held(text: YamlText, node: yaml.Node) -> yaml.Node | None:
    """Return the scalar of an input or output: itself, or the one under its path or value."""
    if not isinstance(node, yaml.MappingNode):
        return node
    return next((found for key in _HELD if (found := text.value(key, root=node)) is not None), None)


def value_of(node: yaml.Node | None) -> Value | None:
    """Return a value as the text gives it; None if there is none."""
    if node is None or node.tag.endswith(":null"):
        return None
    if not isinstance(node, yaml.ScalarNode):
        return Expression("a list" if isinstance(node, yaml.SequenceNode) else "keys and values")
    if match := _INPUT.fullmatch(node.value):
        return FromInput(match[1])
    if match := _NODE_OUTPUT.fullmatch(node.value):
        return FromOutput(match[1], match[2])
    if "${{" in node.value:
        return Expression(node.value)
    return Literal(node.value if node.tag.endswith(":str") else _typed(node))


def _typed(node: yaml.ScalarNode) -> str | int | float | bool:
    value = yaml.load(node.value, Loader=bounded_yaml.LOADER)
    return value if isinstance(value, (int, float, bool)) else str(node.value)


def _step(text: YamlText, item: Item) -> NodePlace:
    first, last = text.lines(item)
    inputs = {
        key.value: place
        for key, value in pairs(text.value("inputs", root=item[1]))
        if (place := _place(text, (key, value))).value != Literal(None)
    }
    return NodePlace(first, last, _lock(text, item), inputs)


def _lock(text: YamlText, item: Item) -> Lock | None:
    line = item[0].start_mark.line + 1
    if text.is_shared(item[1]):
        found = "Its text is shared by an anchor (&), an alias (*) or a merge (<<)"
        return Lock("alias", f"{found}; edit line {line} by hand.", line)
    return None


def _place(text: YamlText, item: Item) -> ValuePlace:
    key, node = item
    line = key.start_mark.line + 1
    value = value_of(held(text, node))
    lock = None
    if isinstance(value, Expression):
        lock = Lock("expression", f"It contains ${{{{...}}}} in a text, or a list; edit line {line} by hand.", line)
    return ValuePlace(value or Literal(None), line, lock)


def bound_outputs(text: YamlText, step: yaml.Node) -> Iterator[tuple[str, str, int]]:
    """Yield the outputs of a step that are outputs of the pipeline: both names, and the line."""
    for key, value in pairs(text.value("outputs", root=step)):
        scalar = held(text, value)
        match = _GRAPH_OUTPUT.fullmatch(scalar.value) if isinstance(scalar, yaml.ScalarNode) else None
        if match:
            yield key.value, match[1], key.start_mark.line + 1
