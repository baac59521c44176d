"""Ports of a node, and the values that are bound to them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from allranks.contract.templating import PRIMITIVES as PRIMITIVES

FILE_TYPES = frozenset({"uri_file"}) | PRIMITIVES
"""Port types whose output is a file. An output of any other type is a folder."""

MOUNTED = frozenset({"ro_mount", "mount", "eval_mount"})
"""Modes of inputs whose data is read-only if instances can mount."""


@dataclass(frozen=True)
class Literal:
    """A value that is known before the run: a number, a string or a boolean."""

    value: str | int | float | bool


@dataclass(frozen=True)
class Path:
    """Data that exists before the run: an absolute local path, or a URI, which this machine may be unable to read.

    type:        the type that is set with the path, which may differ from the port's; "" if none is set
    source:      the URI (without secrets) or path of which `path` is a copy or a sample; "" for the data itself
    sample:      the size of the sample, such as 1%; "" for all data
    note:        a description of the copy or the sample, for the user
    is_relative: whether the user wrote a relative path, whose kind azure-ai-ml does not compare with the type
    """

    path: str
    type: str = field(default="", compare=False)
    source: str = field(default="", compare=False)
    sample: str = field(default="", compare=False)
    note: str = field(default="", compare=False)
    is_relative: bool = field(default=False, compare=False)


@dataclass(frozen=True)
class GraphInput:
    """The value of an input of the enclosing graph: ``${{parent.inputs.NAME}}``."""

    name: str


@dataclass(frozen=True)
class NodeOutput:
    """An output of another node of the same graph: ``${{parent.jobs.NODE.outputs.NAME}}``."""

    node: str
    name: str


@dataclass(frozen=True)
class Text:
    """A text that contains bindings: ``"lr-${{parent.inputs.lr}}"`` is ``Text(("lr-", GraphInput("lr")))``."""

    parts: tuple[str | GraphInput | NodeOutput, ...]


Reference: TypeAlias = GraphInput | NodeOutput
Value: TypeAlias = Literal | Path | GraphInput | NodeOutput | Text


@dataclass(frozen=True)
class Input:
    """An input port with its value.

    type:     integer, number, string, boolean, uri_file, uri_folder, mltable, custom_model, mlflow_model, triton_model
    value:    None for an optional input without a value
    on_azure: a message if Azure ML does not get the value unchanged; "" if it does
    mode:     ro_mount, rw_mount, mount, download, direct, eval_mount, eval_download; "" for a primitive
    default:  the component's; None if it has none
    """

    name: str
    type: str
    value: Value | None = None
    mode: str = ""
    optional: bool = False
    minimum: float | None = None
    maximum: float | None = None
    enum: tuple[str, ...] = ()
    on_azure: str = field(default="", compare=False)
    default: str | int | float | bool | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Output:
    """An output port.

    mode:  rw_mount, mount, upload, direct; "" for a primitive, whose file the process writes
    path:  a path that the user sets (local, or a template with ``${{name}}``, ``${{output_name}}``); None for the run's
           folder
    holds_artifacts: whether it is the root of the step's artifacts, which contains ./outputs
    asset: the data asset or model, NAME or NAME:VERSION, to register when the step has completed; "" for none
    """

    name: str
    type: str
    mode: str = ""
    path: str | None = None
    holds_artifacts: bool = False
    asset: str = field(default="", compare=False)


@dataclass(frozen=True)
class GraphOutput:
    """An output of a graph, and the node within it that writes it. path, asset: as for `Output`."""

    name: str
    source: NodeOutput
    type: str = "uri_folder"
    path: str | None = None
    asset: str = field(default="", compare=False)


def references(value: Value | str | None) -> tuple[Reference, ...]:
    """Return the bindings in a value."""
    if isinstance(value, (GraphInput, NodeOutput)):
        return (value,)
    if isinstance(value, Text):
        return tuple(part for part in value.parts if not isinstance(part, str))
    return ()


def needed_nodes(values: Iterable[Value | str | None]) -> tuple[str, ...]:
    """Return the names of the nodes whose outputs the values refer to, each once, in the order of first use."""
    bindings = (reference for value in values for reference in references(value))
    return tuple(dict.fromkeys(binding.node for binding in bindings if isinstance(binding, NodeOutput)))
