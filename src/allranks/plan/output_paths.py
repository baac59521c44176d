"""Outputs of nodes: the paths that the user sets for them, and the undeclared output of every step, its artifacts.

A graph passes the path of its output on to the node that writes it. Artifacts contain ./outputs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from allranks.plan.graph import Graph, Node, Step
from allranks.plan.ports import NodeOutput, Output, references

ARTIFACTS = "artifacts"
"""The name of the undeclared output. One that a component declares under this name is like any other."""


def graph_output_paths(graph: Graph, outer: Mapping[str, str]) -> dict[NodeOutput, str]:
    """Return the paths for those outputs of nodes that are outputs of the graph.

    outer: the paths that the node that contains the graph sets, by the name of the graph's output
    """
    paths: dict[NodeOutput, str] = {}
    for port in graph.outputs:
        path = outer.get(port.name) or port.path
        if path is not None:
            # The graph may return an output under several names. The first one with a path applies.
            paths.setdefault(port.source, path)
    return paths


def output_path_of(node: Node, output: Output, passed: Mapping[NodeOutput, str]) -> str | None:
    """Return the path that the user sets for a node's output; None if it belongs in the run's folder.

    passed: what `graph_output_paths` returns for the graph
    """
    return passed.get(NodeOutput(node.name, output.name)) or output.path


def output_paths_of(node: Node, passed: Mapping[NodeOutput, str]) -> dict[str, str]:
    """Return the paths that the user sets for a node's outputs, by name, without those in the run's folder."""
    paths = {port.name: output_path_of(node, port, passed) for port in node.outputs}
    return {name: path for name, path in paths.items() if path is not None}


def with_bound_artifacts(nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes of a graph. Steps whose artifacts another node reads also have the artifacts output. A folder
    that they declare under this name holds the artifacts too."""
    listed = list(nodes)
    read = {
        reference.node
        for node in listed
        for value in node.values()
        for reference in references(value)
        if isinstance(reference, NodeOutput) and reference.name == ARTIFACTS
    }
    return [_with_artifacts(node) if isinstance(node, Step) and node.name in read else node for node in listed]


def _with_artifacts(step: Step) -> Step:
    if any(port.name == ARTIFACTS for port in step.outputs):
        outputs = (
            replace(port, holds_artifacts=port.type == "uri_folder") if port.name == ARTIFACTS else port
            for port in step.outputs
        )
        return replace(step, outputs=tuple(outputs))
    return replace(step, outputs=(*step.outputs, Output(ARTIFACTS, "uri_folder", "rw_mount", holds_artifacts=True)))
