"""Ports of a node, and the values that are bound to them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

PRIMITIVES = frozenset({"integer", "number", "string", "boolean"})
"""Port types whose value is a single literal."""

FILE_TYPES = frozenset({"uri_file"}) | PRIMITIVES
"""Port types whose output is one file; of every other type it is a folder."""


@dataclass(frozen=True)
class Literal:
    """A value that is known before anything runs: a number, a text, a boolean."""

    value: str | int | float | bool


@dataclass(frozen=True)
class Path:
    """Data that exists before the run: an absolute local path, or a URI that this machine may be unable to read."""

    path: str


@dataclass(frozen=True)
class GraphInput:
    """The value of an input of the graph around a node: ``${{parent.inputs.NAME}}``."""

    name: str


@dataclass(frozen=True)
class NodeOutput:
    """What another node of the same graph writes: ``${{parent.jobs.NODE.outputs.NAME}}``."""

    node: str
    name: str


@dataclass(frozen=True)
class Text:
    """A text with bindings inside it: ``"lr-${{parent.inputs.lr}}"`` is ``Text(("lr-", GraphInput("lr")))``."""

    parts: tuple[str | GraphInput | NodeOutput, ...]


Reference: TypeAlias = GraphInput | NodeOutput
Value: TypeAlias = Literal | Path | GraphInput | NodeOutput | Text


@dataclass(frozen=True)
class Input:
    """An input port with what is bound to it.

    type:  integer, number, string, boolean, uri_file, uri_folder, mltable, custom_model, mlflow_model, triton_model
    value: None where an optional input is not given
    mode:  ro_mount, rw_mount, mount, download, direct, eval_mount, eval_download; "" for a primitive
    """

    name: str
    type: str
    value: Value | None = None
    mode: str = ""
    optional: bool = False
    minimum: float | None = None
    maximum: float | None = None
    enum: tuple[str, ...] = ()


@dataclass(frozen=True)
class Output:
    """An output port.

    mode: rw_mount, mount, upload, direct; "" for a primitive, which is the path of a file that the process writes
    path: where the user wants it (a local path, or a template with ``${{name}}``, ``${{output_name}}``); None: the
          run's folder
    """

    name: str
    type: str
    mode: str = ""
    path: str | None = None


@dataclass(frozen=True)
class GraphOutput:
    """An output of a graph, and the node within it that writes it. path: as for `Output`."""

    name: str
    source: NodeOutput
    type: str = "uri_folder"
    path: str | None = None


def references(value: Value | str | None) -> tuple[Reference, ...]:
    """Return the bindings that stand in a value."""
    if isinstance(value, (GraphInput, NodeOutput)):
        return (value,)
    if isinstance(value, Text):
        return tuple(part for part in value.parts if not isinstance(part, str))
    return ()


def needed_nodes(values: Iterable[Value | str | None]) -> tuple[str, ...]:
    """Return the names of the nodes whose outputs the values need, each once, in the order in which they are met."""
    found = (reference for value in values for reference in references(value))
    return tuple(dict.fromkeys(one.node for one in found if isinstance(one, NodeOutput)))
