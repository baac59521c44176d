"""The output that every step has without a declaration: the root of its artifacts, with ./outputs inside of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from allranks.plan.graph import Node, Step
from allranks.plan.ports import NodeOutput, Output, references

ARTIFACTS = "artifacts"
"""The name of the output. A component may declare it too."""


def with_bound_artifacts(nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes of a graph. Each step whose artifacts another one reads has them among its outputs."""
    found = list(nodes)
    read = {
        reference.node
        for node in found
        for value in node.values()
        for reference in references(value)
        if isinstance(reference, NodeOutput) and reference.name == ARTIFACTS
    }
    return [_with_artifacts(node) if isinstance(node, Step) and node.name in read else node for node in found]


def _with_artifacts(step: Step) -> Step:
    if any(port.name == ARTIFACTS for port in step.outputs):
        return step
    return replace(step, outputs=(*step.outputs, Output(ARTIFACTS, "uri_folder", "rw_mount")))
