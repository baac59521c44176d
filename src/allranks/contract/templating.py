"""Command templates: ``${{inputs.x}}``, ``${{outputs.y}}``, and ``$[[ ... ]]`` around optional inputs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

Primitive: TypeAlias = str | int | float | bool

PRIMITIVES = frozenset({"integer", "number", "string", "boolean"})
"""Port types whose value is a single literal."""

EXPECTED = {"integer": "a whole number", "number": "a number", "boolean": "true or false", "string": "a text"}
"""Descriptions of the values of these types, for messages."""

_TOKEN = re.compile(r"(?P<open>\$\[\[)|(?P<close>]])|\$\{\{\s*(?P<expression>[^\s{}]*)\s*}}")
_PLACEHOLDER = re.compile(r"\$\{\{\s*([^\s{}]*)\s*}}")


@dataclass(frozen=True)
class Name:
    """A reference in a command: ``${{inputs.lr}}`` is Name("inputs", "lr").

    optional: whether it is inside ``$[[ ... ]]``
    """

    kind: str
    name: str
    optional: bool = False

    def __str__(self) -> str:
        return f"${{{{{self.kind}.{self.name}}}}}" if self.name else f"${{{{{self.kind}}}}}"


@dataclass(frozen=True)
class _Optional:
    parts: tuple[_Part, ...]


_Part: TypeAlias = "str | Name | _Optional"


def render(command: str, inputs: Mapping[str, str | None], outputs: Mapping[str, str]) -> str:
    """Return the command with its references replaced.

    inputs:  the text of each input: a primitive's value as `wire` returns it, or the path of data; None for an optional
             input without a value
    outputs: the path of each output; for a primitive output, of the file that the process writes

    A part ``$[[ ... ]]`` is removed if one of its inputs has no value. Parts may be nested; an inner part is removed
    on its own. Values are inserted unchanged, including spaces and shell characters, as Azure ML does: the command must
    quote them. Other expressions, such as ``${{search_space.x}}``, do not change.

    Raise KeyError for a name that is in neither mapping, and for an input without a value outside ``$[[ ... ]]``.
    """
    return "".join(_rendered(part, inputs, outputs) for part in _parse(command))


def wire(value: str | int | float | bool) -> str:
    """Return a literal as text for a command, in Python's notation: ``True``, ``1.0``, ``1e-05``."""
    return str(value)


def used_names(command: str) -> tuple[Name, ...]:
    """Return all references in the command, in order, with repetitions."""
    return tuple(_names(_parse(command), optional=False))


def is_closed(command: str) -> bool:
    """Return whether every ``$[[`` has its ``]]``."""
    depth = 0
    for token in _TOKEN.finditer(command):
        if token["open"]:
            depth += 1
        elif token["close"] and depth:
            depth -= 1
    return depth == 0


def output_path(template: str, *, name: str, output_name: str, default_datastore: str = "workspaceblobstore") -> str:
    """Return the path of an output. ``${{name}}`` is the job's name, ``${{output_name}}`` the output's name.

    Raise KeyError for an expression other than these and ``${{default_datastore}}``.
    """
    values = {"name": name, "output_name": output_name, "default_datastore": default_datastore}
    return _PLACEHOLDER.sub(lambda match: values[match[1]], template)


def used_placeholders(template: str) -> tuple[str, ...]:
    """Return the expressions in an output's path, in order."""
    return tuple(_PLACEHOLDER.findall(template))


def _parse(command: str) -> tuple[_Part, ...]:
    levels: list[list[_Part]] = [[]]
    position = 0
    for token in _TOKEN.finditer(command):
        if token["close"] and len(levels) == 1:
            continue  # a test of the shell: [[ -f x ]]
        levels[-1].append(command[position : token.start()])
        position = token.end()
        if token["open"]:
            levels.append([])
        elif token["close"]:
            part = _Optional(tuple(levels.pop()))
            levels[-1].append(part)
        else:
            kind, _, name = token["expression"].partition(".")
            levels[-1].append(Name(kind, name))
    levels[-1].append(command[position:])
    while len(levels) > 1:
        unclosed = levels.pop()
        levels[-1] += ["$[[", *unclosed]
    return tuple(levels[0])


def _rendered(part: _Part, inputs: Mapping[str, str | None], outputs: Mapping[str, str]) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, _Optional):
        named = [inner for inner in part.parts if isinstance(inner, Name) and inner.kind == "inputs"]
        if any(inputs[inner.name] is None for inner in named):
            return ""
        return "".join(_rendered(inner, inputs, outputs) for inner in part.parts)
    if part.kind == "outputs":
        return outputs[part.name]
    if part.kind == "inputs":
        value = inputs[part.name]
        if value is None:
            raise KeyError(part.name)
        return value
    return str(part)


def _names(parts: tuple[_Part, ...], *, optional: bool) -> Iterator[Name]:
    for part in parts:
        if isinstance(part, Name):
            yield Name(part.kind, part.name, optional)
        elif isinstance(part, _Optional):
            yield from _names(part.parts, optional=True)
