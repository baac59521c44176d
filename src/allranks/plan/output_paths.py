"""Paths that the user sets for outputs. A graph passes the path of its output on to the node that writes it."""

from __future__ import annotations

from collections.abc import Mapping

from allranks.plan.graph import Graph, Node
from allranks.plan.ports import NodeOutput, Output


def passed_on(graph: Graph, outer: Mapping[str, str]) -> dict[NodeOutput, str]:
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


def wanted_path(node: Node, output: Output, passed: Mapping[NodeOutput, str]) -> str | None:
    """Return the path that the user sets for a node's output; None if it belongs in the run's folder.

    passed: what `passed_on` returns for the graph
    """
    return passed.get(NodeOutput(node.name, output.name)) or output.path


def wanted_paths(node: Node, passed: Mapping[NodeOutput, str]) -> dict[str, str]:
    """Return the paths that the user sets for a node's outputs, by name, without those in the run's folder."""
    paths = {port.name: wanted_path(node, port, passed) for port in node.outputs}
    return {name: path for name, path in paths.items() if path is not None}
