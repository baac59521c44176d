"""Where the user wants outputs: a graph passes the path of its own output on to the node that writes it."""

from __future__ import annotations

from collections.abc import Mapping

from allranks.plan.graph import Graph, Node
from allranks.plan.ports import NodeOutput, Output


def passed_on(graph: Graph, outer: Mapping[str, str]) -> dict[NodeOutput, str]:
    """Return where the nodes of a graph are to write the outputs that the graph passes on.

    outer: the paths that the node around the graph wants, by the name of the graph's output
    """
    paths: dict[NodeOutput, str] = {}
    for port in graph.outputs:
        path = outer.get(port.name) or port.path
        if path is not None:
            # One output may be passed on under several names: the first that has a path decides.
            paths.setdefault(port.source, path)
    return paths


def wanted_path(node: Node, output: Output, passed: Mapping[NodeOutput, str]) -> str | None:
    """Return where the user wants an output of a node; None where it belongs into the run's folder.

    passed: what `passed_on` returns for the graph
    """
    return passed.get(NodeOutput(node.name, output.name)) or output.path


def wanted_paths(node: Node, passed: Mapping[NodeOutput, str]) -> dict[str, str]:
    """Return where the user wants the outputs of a node, by name, without those that belong into the run's folder."""
    found = {port.name: wanted_path(node, port, passed) for port in node.outputs}
    return {name: path for name, path in found.items() if path is not None}
