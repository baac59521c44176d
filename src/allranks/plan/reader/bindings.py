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
    for match in _BINDING.finditer(text):
        if match.start() > position:
            parts.append(text[position : match.start()])
        parts.append(_reference(match))
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


def _reference(match: re.Match[str]) -> GraphInput | NodeOutput:
    if match["input"]:
        return GraphInput(match["input"])
    return NodeOutput(match["step"], match["output"])
