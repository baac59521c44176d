"""What the designer needs of a language: where things are in the text, and the text after an edit."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from allranks_studio.documents.canvas import Graph, Lock
from allranks_studio.documents.edits import Edit, Value


@dataclass(frozen=True)
class ValuePlace:
    """An input of a node, or of a graph, or an output of a graph, as the text gives it."""

    value: Value
    line: int
    lock: Lock | None = None


@dataclass(frozen=True)
class NodePlace:
    """The lines of a node, and its inputs that the text sets."""

    first: int
    last: int
    lock: Lock | None = None
    inputs: Mapping[str, ValuePlace] = field(default_factory=dict)


@dataclass(frozen=True)
class Outline:
    """The places in a text: of nodes by path, and of inputs and outputs of graphs by the graph's path and the name.

    taken: further names that a new node cannot have
    """

    nodes: Mapping[str, NodePlace]
    inputs: Mapping[tuple[str, str], ValuePlace] = field(default_factory=dict)
    outputs: Mapping[tuple[str, str], ValuePlace] = field(default_factory=dict)
    taken: Collection[str] = ()


class Language(Protocol):
    """Python or YAML."""

    def outline(self, text: str) -> Outline:
        """Return the places in a text. Raise InputError, with the line, if it cannot be parsed."""

    def edited(self, text: str, edit: Edit, graph: Graph, path: Path) -> str:
        """Return the text after one edit. graph: that of the text, as it was read; path: of the file

        Raise InputError if the edit is impossible, or if what it changes is locked.
        """
