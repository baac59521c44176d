"""Bindings as the SDK writes them, ``${{parent.inputs.lr}}``, and the references of a plan that they stand for."""

from __future__ import annotations

import re

from allranks.plan.ports import GraphInput, Literal, NodeOutput, Text, Value

_BINDING = re.compile(
    r"\$\{\{\s*parent\.(?:inputs\.(?P<input>[\w.\-]+)|jobs\.(?P<step>[\w\-]+)\.outputs\.(?P<output>[\w.\-]+))\s*}}"
)
_PIPELINE_OUTPUT = re.compile(r"\$\{\{\s*parent\.outputs\.([\w.\-]+)\s*}}")


def value_of(text: str) -> Value:
    """What a text stands for: a reference where it is one binding, a Text where some stand inside it, or itself."""
    parts: list[str | GraphInput | NodeOutput] = []
    position = 0
    for found in _BINDING.finditer(text):
        if found.start() > position:
            parts.append(text[position : found.start()])
        parts.append(_reference(found))
        position = found.end()
    if position < len(text):
        parts.append(text[position:])
    if len(parts) == 1 and not isinstance(parts[0], str):
        return parts[0]
    return Text(tuple(parts)) if position else Literal(text)


def pipeline_output(text: str) -> str | None:
    """The name of the pipeline's output that ``${{parent.outputs.NAME}}`` names, or None for any other text."""
    found = _PIPELINE_OUTPUT.fullmatch(text.strip())
    return found[1] if found else None


def _reference(found: re.Match[str]) -> GraphInput | NodeOutput:
    if found["input"]:
        return GraphInput(found["input"])
    return NodeOutput(found["step"], found["output"])
