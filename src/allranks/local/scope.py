"""A graph during its execution: the values of its inputs, and the records of its nodes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from allranks.history.records import OutputRecord, Status, StepRecord
from allranks.plan.graph import Graph, Node
from allranks.plan.ports import PRIMITIVES, GraphInput, NodeOutput, Output, Reference
from allranks.plan.values import output_path_of, output_paths_of


@dataclass
class Scope:
    """One execution of a graph. Each iteration of a loop runs the body's graph in its own scope.

    path:         the path of the node that contains the graph, with a trailing dot; "" for the pipeline itself
    inputs:       the graph's inputs as text; None for an input without a value
    output_paths: user-defined paths of node outputs that the graph passes on
    records:      the records of the graph's nodes, by name
    tolerates_failures: whether a failed node does not end the run, whatever its `continue_on_step_failure`
    """

    graph: Graph
    path: str = ""
    inputs: Mapping[str, str | None] = field(default_factory=dict)
    output_paths: Mapping[NodeOutput, str] = field(default_factory=dict)
    records: dict[str, StepRecord] = field(default_factory=dict)
    tolerates_failures: bool = False

    def path_of(self, node: Node) -> str:
        return f"{self.path}{node.name}"

    def lookup(self, reference: Reference) -> str | None:
        """Return the value of a reference: a path, or the text of a primitive; None for no value."""
        if isinstance(reference, GraphInput):
            return self.inputs.get(reference.name)
        output = self.output(reference)
        return None if output is None else text_of(output)

    def output(self, reference: NodeOutput) -> OutputRecord | None:
        """Return the output that a node wrote; None if the node was skipped."""
        return next((output for output in self.records[reference.node].outputs if output.name == reference.name), None)

    def output_path_of(self, node: Node, output: Output) -> str | None:
        """Return the user-defined path of an output; None if it belongs in the run's folder."""
        return output_path_of(node, output, self.output_paths)

    def output_paths_of(self, node: Node) -> dict[str, str]:
        """Return the user-defined paths of a node's outputs, without those that belong in the run's folder."""
        return output_paths_of(node, self.output_paths)

    def outputs(self) -> list[OutputRecord]:
        """Return the graph's outputs whose nodes are complete, with their names in the graph."""
        records = []
        for port in self.graph.outputs:
            is_complete = self.records[port.source.node].status is Status.COMPLETED
            output = self.output(port.source) if is_complete else None
            if output is not None:
                records.append(OutputRecord(port.name, output.type, output.path, output.value, output.digest))
        return records


def text_of(output: OutputRecord) -> str:
    """Return the value of an output in a command: the text of a primitive, or a path."""
    return output.value if output.value is not None and output.type in PRIMITIVES else output.path
