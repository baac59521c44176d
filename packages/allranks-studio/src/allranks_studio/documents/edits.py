"""The edits of a pipeline that the designer makes, as they come from the browser: {"op": "add_node", ...}."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class Literal:
    """A value that the file states."""

    value: str | int | float | bool | None


@dataclass(frozen=True)
class FromInput:
    """An input of the same graph."""

    name: str


@dataclass(frozen=True)
class FromOutput:
    """An output of a node of the same graph."""

    node: str
    port: str


@dataclass(frozen=True)
class Expression:
    """Any other code, which is shown and kept, but not edited. text: the code"""

    text: str


Value: TypeAlias = Literal | FromInput | FromOutput | Expression


@dataclass(frozen=True)
class AddNode:
    """graph: path of the nested pipeline, "" for the file's own; component: as the palette names it; name: "" to choose
    one"""

    graph: str
    component: str
    name: str = ""
    inputs: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True)
class DeleteNode:
    """Inputs and outputs that the node was connected to are disconnected."""

    node: str


@dataclass(frozen=True)
class RenameNode:
    node: str
    name: str


@dataclass(frozen=True)
class DuplicateNode:
    """name: of the new node, "" to choose one"""

    node: str
    name: str = ""


@dataclass(frozen=True)
class SetInput:
    """Set a value, or connect."""

    node: str
    input: str
    value: Value


@dataclass(frozen=True)
class ResetInput:
    """Return to the default, or disconnect."""

    node: str
    input: str


@dataclass(frozen=True)
class SetLayout:
    """Each count is an integer or an input of the graph."""

    node: str
    instances: Value
    processes: Value


@dataclass(frozen=True)
class SetDistribution:
    node: str
    distribution: str


@dataclass(frozen=True)
class SetCompute:
    """node: "" for the default of the pipeline; compute: "" for none"""

    node: str
    compute: str


@dataclass(frozen=True)
class AddInput:
    """minimum, maximum, enum: as those of the input of a component that it is made for"""

    graph: str
    name: str
    type: str
    default: str | int | float | bool | None = None
    minimum: int | float | None = None
    maximum: int | float | None = None
    enum: tuple[str, ...] = ()


@dataclass(frozen=True)
class DeleteInput:
    graph: str
    name: str


@dataclass(frozen=True)
class AddOutput:
    graph: str
    name: str
    node: str
    port: str


@dataclass(frozen=True)
class DeleteOutput:
    graph: str
    name: str


@dataclass(frozen=True)
class WrapNodes:
    """Move nodes of one graph into a nested pipeline of this name."""

    nodes: tuple[str, ...]
    name: str


Edit: TypeAlias = (
    AddNode
    | DeleteNode
    | RenameNode
    | DuplicateNode
    | SetInput
    | ResetInput
    | SetLayout
    | SetDistribution
    | SetCompute
    | AddInput
    | DeleteInput
    | AddOutput
    | DeleteOutput
    | WrapNodes
)
