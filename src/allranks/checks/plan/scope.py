"""A graph that is checked, with its path and the values of its inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from enum import Enum, auto

from allranks.plan.graph import Graph, Node, Pipeline, Plan
from allranks.plan.ports import GraphInput, Literal, NodeOutput, Path, Text, Value
from allranks.sdk.paths import shown


class Known(Enum):
    """The state of a value that is neither a literal nor a path."""

    LATER = auto()
    """The value is known when the node starts."""


Bound = Literal | Path | Known | None
"""The value of a graph's input, resolved through all levels; None if it has none."""


@dataclass(frozen=True)
class Scope:
    """A graph within its plan.

    path:     the path of the enclosing node, with a trailing dot; "" for the pipeline itself
    bound:    the values of the graph's inputs
    here:     whether the plan will run on this machine, which must then be able to read the data
    today:    the date, for checks such as that of retired sizes
    supplied: inputs of the checked node that get their values from a loop
    """

    plan: Plan
    graph: Graph
    path: str
    bound: Mapping[str, Bound]
    here: bool = True
    today: date = field(default_factory=date.today)
    supplied: frozenset[str] = frozenset()

    def of(self, node: Node) -> str:
        """Return ``step tune.train (pipeline.py:31)``."""
        return f"step {self.path}{node.name}{node.at}"

    def key(self, node: Node | None, key: str) -> str:
        """Return ``step tune.train, key inputs.lr (pipeline.py:31)``.

        For None, return the place in the graph: ``pipeline digits, key inputs.lr (pipeline.py)``, or ``pipeline
        component tune, key outputs.model``.
        """
        if node is not None:
            return f"step {self.path}{node.name}, key {key}{node.at}"
        if self.path:
            return f"pipeline component {self.path.rstrip('.')}, key {key}"
        return f"pipeline {self.plan.name}, key {key}{f' ({shown(self.plan.source)})' if self.plan.source else ''}"

    @property
    def name(self) -> str:
        """The name of the graph, for messages."""
        return f"pipeline component {self.path.rstrip('.')}" if self.path else "the pipeline"

    def set_input(self, name: str, value: str) -> str:
        """Return the instruction to set an input of the graph."""
        return f"change {name} of {self.name}" if self.path else f"--set {name}={value}"

    def value(self, value: Value | None) -> Bound:
        """Return a value, resolved through all levels."""
        if isinstance(value, GraphInput):
            return self.bound.get(value.name)
        if isinstance(value, (NodeOutput, Text)):
            return Known.LATER
        return value

    def type_of(self, reference: GraphInput | NodeOutput) -> str:
        """Return the type of the target of a reference. Raise KeyError if it is dangling."""
        if isinstance(reference, GraphInput):
            return self.graph.input_by_name[reference.name].type
        return {port.name: port.type for port in self.graph.by_name[reference.node].outputs}[reference.name]

    def within(self, node: Pipeline, path: str) -> Scope:
        """Return the scope of the graph that a node contains. path: of the node"""
        values = {port.name: self.value(port.value) for port in node.inputs}
        bound: dict[str, Bound] = {}
        for port in node.graph.inputs:
            own = values.get(port.name)
            if port.name in self.supplied:
                own = Known.LATER
            bound[port.name] = self.value(port.value) if own is None else own
        return replace(self, graph=node.graph, path=f"{path}.", bound=bound, supplied=frozenset())


def of_plan(plan: Plan, *, here: bool = True, today: date | None = None) -> Scope:
    literals: dict[str, Bound] = {
        port.name: port.value if isinstance(port.value, (Literal, Path)) else None for port in plan.graph.inputs
    }
    return Scope(plan, plan.graph, "", literals, here, today or date.today())
