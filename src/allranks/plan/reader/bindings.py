"""Parse bindings, ``${{parent.inputs.lr}}``, as references of a plan."""

from __future__ import annotations

import re

from allranks.plan.ports import GraphInput, Literal, NodeOutput, Text, Value

_BINDING = re.compile(
    r"\$\{\{\s*parent\.(?:inputs\.(?P<input>[\w.\-]+)|jobs\.(?P<step>[\w\-]+)\.outputs\.(?P<output>[\w.\-]+))\s*}}"
)
_PIPELINE_OUTPUT = re.compile(r"\$\{\{\s*parent\.outputs\.([\w.\-]+)\s*}}")


def value_of(text: str) -> Value:
    """Return the value of a text: a reference if it is one binding, a Text if it contains bindings, else the text."""
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
    """Return the name of the pipeline's output in ``${{parent.outputs.NAME}}``; None for any other text."""
    found = _PIPELINE_OUTPUT.fullmatch(text.strip())
    return found[1] if found else None


def _reference(found: re.Match[str]) -> GraphInput | NodeOutput:
    if found["input"]:
        return GraphInput(found["input"])
    return NodeOutput(found["step"], found["output"])
