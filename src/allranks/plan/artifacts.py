"""The undeclared output of every step: the root of its artifacts, which contains ./outputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from allranks.plan.graph import Node, Step
from allranks.plan.ports import NodeOutput, Output, references

ARTIFACTS = "artifacts"
"""The name of the output. A component may also declare it."""


def with_bound_artifacts(nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes of a graph. Steps whose artifacts another node reads also have the artifacts output."""
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
        return step
    return replace(step, outputs=(*step.outputs, Output(ARTIFACTS, "uri_folder", "rw_mount")))
