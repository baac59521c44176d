"""The graph that is being checked: where it stands, and what its inputs are bound to."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto

from allranks.plan.graph import Graph, Node, Pipeline, Plan
from allranks.plan.ports import GraphInput, GraphOutput, Input, Literal, NodeOutput, Output, Path, Text, Value
from allranks.sdk.paths import shown


class Known(Enum):
    """What is known before the run of a value that is no literal and no path."""

    LATER = auto()
    """It is given, and its value is known when the node starts."""


Bound = Literal | Path | Known | None
"""What an input of a graph is bound to, through all levels; None: nothing."""


@dataclass(frozen=True)
class Scope:
    """A graph within its plan.

    path:     the path of the node that holds the graph, with the dot behind it; "" for the pipeline itself
    bound:    what the graph's inputs are bound to
    supplied: inputs of nodes that a loop gives values to: (node, input)
    """

    plan: Plan
    graph: Graph
    path: str
    bound: Mapping[str, Bound]
    supplied: Collection[tuple[str, str]] = field(default_factory=frozenset)

    def of(self, node: Node) -> str:
        """``step tune.train (pipeline.py:31)``."""
        return f"step {self.path}{node.name}{_at(node)}"

    def key(self, node: Node, key: str) -> str:
        """``step tune.train, key inputs.lr (pipeline.py:31)``."""
        return f"step {self.path}{node.name}, key {key}{_at(node)}"

    def own_key(self, key: str) -> str:
        """Return a key of the pipeline: ``pipeline digits, key inputs.lr (pipeline.py)``; of a pipeline component
        ``pipeline component tune, key outputs.model``."""
        if self.path:
            return f"pipeline component {self.path.rstrip('.')}, key {key}"
        return f"pipeline {self.plan.name}, key {key}{f' ({shown(self.plan.source)})' if self.plan.source else ''}"

    @property
    def name(self) -> str:
        """How messages call the graph."""
        return f"pipeline component {self.path.rstrip('.')}" if self.path else "the pipeline"

    def set_input(self, name: str, value: str) -> str:
        """Return how a user gives an input of the graph a value."""
        return f"give {name} of {self.name} another value" if self.path else f"--set {name}={value}"

    def value(self, value: Value | None) -> Bound:
        """Return what a value is, through all levels."""
        if isinstance(value, GraphInput):
            return self.bound.get(value.name)
        if isinstance(value, (NodeOutput, Text)):
            return Known.LATER
        return value

    def type_of(self, reference: GraphInput | NodeOutput) -> str:
        """Return the type of what a reference leads to. Raise KeyError where it leads nowhere."""
        return self.target(reference).type

    def target(self, reference: GraphInput | NodeOutput) -> Input | Output | GraphOutput:
        """Return the port that a reference leads to. Raise KeyError where it leads nowhere."""
        if isinstance(reference, GraphInput):
            return self.graph.input_by_name[reference.name]
        ports = self.graph.by_name[reference.node].outputs
        return {port.name: port for port in ports}[reference.name]

    def within(self, node: Pipeline, path: str, supplied: Collection[str] = ()) -> Scope:
        """Return the scope of the graph that a node holds.

        path:     of the node
        supplied: inputs of the graph that a loop gives values to
        """
        given = {port.name: self.value(port.value) for port in node.inputs}
        bound: dict[str, Bound] = {}
        for port in node.graph.inputs:
            own = given.get(port.name)
            if port.name in supplied:
                own = Known.LATER
            bound[port.name] = self.value(port.value) if own is None else own
        return Scope(self.plan, node.graph, f"{path}.", bound)


def of_plan(plan: Plan) -> Scope:
    """Return the scope of the pipeline itself."""
    literals: dict[str, Bound] = {
        port.name: port.value if isinstance(port.value, (Literal, Path)) else None for port in plan.graph.inputs
    }
    return Scope(plan, plan.graph, "", literals)


def _at(node: Node) -> str:
    return f" ({node.location})" if node.location else ""
