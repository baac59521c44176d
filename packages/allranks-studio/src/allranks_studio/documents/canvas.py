"""The graph of a document as the designer draws it. Its fields are those of `web/src/api.ts`."""

from dataclasses import dataclass
from typing import Literal as Choice
from typing import TypeAlias

from allranks_studio.documents.edits import Value

Primitive: TypeAlias = str | int | float | bool | None

WITH_PROCESSES = ("pytorch", "mpi")
"""Distributions with a count of processes on each instance."""


@dataclass(frozen=True)
class Lock:
    """Why a node or a value cannot be edited here. text: one sentence, with what to do; line: of the file, from 1"""

    reason: Choice["loop", "helper", "kwargs", "expression", "alias", "unsupported"]
    text: str
    line: int


@dataclass(frozen=True)
class Port:
    name: str
    type: str
    optional: bool = False
    description: str = ""
    default: Primitive = None
    minimum: float | None = None
    maximum: float | None = None
    enum: tuple[str, ...] = ()


@dataclass(frozen=True)
class InputPort(Port):
    """value: None if it is not set; line: of the value, 0 if it is not set; locked: why it cannot be edited"""

    value: Value | None = None
    line: int = 0
    locked: str = ""


@dataclass(frozen=True)
class OutputPort:
    """An output of a graph."""

    name: str
    type: str
    value: Value
    line: int = 0


@dataclass(frozen=True)
class Layout:
    """size: of the instances, "" if it is not given; gpus: of each instance"""

    distribution: str
    instances: Value
    processes: Value
    size: str = ""
    gpus: int = 0


@dataclass(frozen=True)
class Node:
    """path: "train", or "tune.train" in a nested pipeline; note: what a control node does

    first, last: the node's lines; 0 if it is not in this file
    graph:       of a pipeline component. The body of a loop is a node of its own, which the loop waits for
    after:       nodes of the same graph that it waits for without data
    """

    path: str
    name: str
    kind: str
    component: str = ""
    version: str = ""
    display_name: str = ""
    description: str = ""
    inputs: tuple[InputPort, ...] = ()
    outputs: tuple[Port, ...] = ()
    layout: Layout | None = None
    compute: str = ""
    environment: str = ""
    note: str = ""
    first: int = 0
    last: int = 0
    lock: Lock | None = None
    graph: "Graph | None" = None
    after: tuple[str, ...] = ()


@dataclass(frozen=True)
class Graph:
    inputs: tuple[InputPort, ...] = ()
    outputs: tuple[OutputPort, ...] = ()
    nodes: tuple[Node, ...] = ()
