"""Resolve the inputs of a node after the nodes that it needs have ended."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from allranks.contract.templating import wire
from allranks.plan.ports import GraphInput, Input, Literal, NodeOutput, Path, Reference, Text, Value

Lookup = Callable[[Reference], str | None]
"""Returns the path or the text of a primitive that a reference resolves to; None if it has no value."""


@dataclass(frozen=True)
class Given:
    """An input port with its value: text for a primitive, an absolute path for data, None for an optional input without
    a value."""

    name: str
    type: str
    mode: str
    value: str | None


def given(inputs: Iterable[Input], lookup: Lookup) -> list[Given]:
    """Return every input port with its value."""
    return [Given(port.name, port.type, port.mode, resolve(port.value, lookup)) for port in inputs]


def resolve(value: Value | str | None, lookup: Lookup) -> str | None:
    """Return the text of a value in a command; None if it has none."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Literal):
        return wire(value.value)
    if isinstance(value, Path):
        return value.path
    if isinstance(value, (GraphInput, NodeOutput)):
        return lookup(value)
    return _joined(value, lookup)


def _joined(text: Text, lookup: Lookup) -> str:
    return "".join(part if isinstance(part, str) else lookup(part) or "" for part in text.parts)
