"""A graph while it runs: the values of its inputs, the records of its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from allranks.plan.graph import Graph, Node
from allranks.plan.output_paths import wanted_path, wanted_paths
from allranks.plan.ports import PRIMITIVES, GraphInput, NodeOutput, Output, Reference
from allranks.runs.records import OutputRecord, Status, StepRecord


@dataclass
class Scope:
    """One execution of a graph. A loop runs its body's graph in a scope of its own for each iteration.

    path:         the path of the node that holds the graph, with the dot behind it; "" for the pipeline itself
    inputs:       the texts of the graph's inputs; None for one that is not given
    output_paths: where the user wants outputs of nodes that the graph passes on
    records:      of the graph's nodes, by name
    """

    graph: Graph
    path: str = ""
    inputs: Mapping[str, str | None] = field(default_factory=dict)
    output_paths: Mapping[NodeOutput, str] = field(default_factory=dict)
    records: dict[str, StepRecord] = field(default_factory=dict)

    def path_of(self, node: Node) -> str:
        """Return the path of a node."""
        return f"{self.path}{node.name}"

    def lookup(self, reference: Reference) -> str | None:
        """Return what a reference stands for: a path, or the text of a primitive; None for nothing."""
        if isinstance(reference, GraphInput):
            return self.inputs.get(reference.name)
        found = self.output(reference)
        return None if found is None else text_of(found)

    def output(self, reference: NodeOutput) -> OutputRecord | None:
        """Return what a node has written; None where it was skipped."""
        return next((output for output in self.records[reference.node].outputs if output.name == reference.name), None)

    def wanted_path(self, node: Node, output: Output) -> str | None:
        """Return where the user wants an output; None where it belongs into the run's folder."""
        return wanted_path(node, output, self.output_paths)

    def wanted_paths(self, node: Node) -> dict[str, str]:
        """Return where the user wants the outputs of a node, without those that belong into the run's folder."""
        return wanted_paths(node, self.output_paths)

    def outputs(self) -> list[OutputRecord]:
        """Return the outputs of the graph whose nodes are complete, by their names in the graph."""
        found = []
        for port in self.graph.outputs:
            is_complete = self.records[port.source.node].status is Status.COMPLETED
            output = self.output(port.source) if is_complete else None
            if output is not None:
                found.append(OutputRecord(port.name, output.type, output.path, output.value, output.digest))
        return found


def text_of(output: OutputRecord) -> str:
    """Return what an output stands for in a command: the text of a primitive, or a path."""
    return output.value if output.value is not None and output.type in PRIMITIVES else output.path
