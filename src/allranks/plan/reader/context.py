"""The context in which the nodes of a graph are read. Parse the bindings in their values."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allranks.errors import Problem, Problems, StepPlace, did_you_mean
from allranks.plan.assets.lookup import AssetLookup
from allranks.plan.graph import Code
from allranks.plan.ports import GraphInput, Literal, NodeOutput, Text, Value, references
from allranks.sdk.compilation import Locate, nowhere

_BINDING = re.compile(
    r"\$\{\{\s*parent\.(?:inputs\.(?P<input>[\w.\-]+)|jobs\.(?P<step>[\w\-]+)\.outputs\.(?P<output>[\w.\-]+))\s*}}"
)
_DEFAULT_DATASTORE = re.compile(r"\$\{\{\s*default_datastore\s*}}")
_PIPELINE_OUTPUT = re.compile(r"\$\{\{\s*parent\.outputs\.([\w.\-]+)\s*}}")


def value_of(text: str) -> Value:
    """Return the value of a text: a reference if it is one binding, a Text if it contains bindings, else the text."""
    parts: list[str | GraphInput | NodeOutput] = []
    position = 0
    for match in _BINDING.finditer(text):
        if match.start() > position:
            parts.append(text[position : match.start()])
        step = match["step"]
        parts.append(NodeOutput(step, match["output"]) if step else GraphInput(match["input"]))
        position = match.end()
    if position < len(text):
        parts.append(text[position:])
    if len(parts) == 1 and not isinstance(parts[0], str):
        return parts[0]
    return Text(tuple(parts)) if position else Literal(text)


def pipeline_output(text: str) -> str | None:
    """Return the name of the pipeline's output in ``${{parent.outputs.NAME}}``; None for any other text."""
    match = _PIPELINE_OUTPUT.fullmatch(text.strip())
    return match[1] if match else None


@dataclass
class Context:
    """The context of a graph while its nodes are read.

    base:      the folder to which paths of data are relative
    snapshots: the folder of code snapshots; None to copy no code
    values:    the values of the graph's inputs that are known before the run
    datastore: the pipeline's default datastore
    locate:    returns the location of a node in the user's files
    lookup:    resolves ids; None to leave them unresolved
    path:      the path of the node that contains the graph, with a trailing dot; "" for the pipeline itself
    alone:     whether the step is a standalone job, whose inputs the user sets directly
    codes:     snapshots so far, by the path of the code
    problems:  problems so far
    """

    base: Path
    snapshots: Path | None
    values: Mapping[str, Any]
    locate: Locate = nowhere
    lookup: AssetLookup | None = None
    path: str = ""
    alone: bool = False
    datastore: str = "workspaceblobstore"
    codes: dict[object, Code | None] = field(default_factory=dict)
    problems: Problems = field(default_factory=Problems)

    def with_datastore(self, text: str) -> str:
        """Return a path with ``${{default_datastore}}`` replaced."""
        return _DEFAULT_DATASTORE.sub(self.datastore, text)

    def place(self, name: str) -> StepPlace:
        """Return the place of a node of this graph, for messages."""
        return StepPlace(f"{self.path}{name}", self.locate(f"{self.path}{name}"))


def known_value(value: Any, key: str, place: StepPlace, context: Context) -> Any:
    """Return a setting of a step, with bindings to inputs of the graph replaced by their values.

    If a value is unknown, add a problem and return None.
    """
    binding = value_of(value) if isinstance(value, str) else Literal(value)
    if isinstance(binding, Literal):
        return value
    names = [each.name for each in references(binding) if isinstance(each, GraphInput)]
    of = f" of {context.path.rstrip('.')}" if context.path else ""
    expected, fix = "a value that is known before the run", "bind it to an input of the pipeline, or write the value"
    if unknown := next((name for name in names if name not in context.values), None):
        found = f"the pipeline{of} has no input {unknown}"
        expected = f"one of {', '.join(context.values)}" if context.values else expected
        fix = did_you_mean(unknown, context.values, fix)
    elif len(names) < len(references(binding)):
        found = str(value)
    elif missing := next((name for name in names if context.values[name] is None), None):
        found = f"it is bound to the pipeline's input {missing}{of}, which has no value before the run"
        fix = f"give it a value{'' if context.path else f': --set {missing}=VALUE'}"
    elif isinstance(binding, Text):
        return "".join(each if isinstance(each, str) else str(context.values[each.name]) for each in binding.parts)
    else:
        return context.values[names[0]]
    context.problems.append(Problem(place.key(key), found, expected, fix))
    return None


def integer(value: Any, key: str, place: StepPlace, context: Context) -> int | None:
    """Return a setting that must be an integer, resolved by `known_value`. Add a problem for any other value."""
    value = known_value(value, key, place, context)
    if isinstance(value, str) and value.strip().lstrip("-").isdecimal():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if value is not None:
        context.problems.append(Problem(place.key(key), repr(value), "a whole number"))
    return None
