"""Convert the nodes of a pipeline job or a pipeline component to the SDK's entities, each with its component."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from allranks.errors import InputError, Problem
from allranks.plan.reader.rest import components, ports
from allranks.plan.reader.rest.assets import Assets
from allranks.sdk import internals

_WITH_COMPONENT = ("command", "pipeline")
"""The types of nodes that run a component. Control flow nodes have none; the reader of pipelines rejects all others."""


def nodes(jobs: Mapping[str, Any], assets: Assets, known: dict[str, Any] | None = None, path: str = "") -> Any:
    """Return the entities of a REST body's `jobs` by name, in the order of the body.

    known: the components read so far, by id; new ones are added, because nodes may share a component
    path:  the path of the node that contains these nodes, with a trailing dot; "" for the pipeline job itself

    Raise InputError with the problems of the components of all nodes, or any exception of the SDK for a node that it
    cannot read.
    """
    bodies = copy.deepcopy(dict(jobs))
    known = {} if known is None else known
    problems: list[Problem] = []
    for name, node in bodies.items():
        kind = node.get("type", "command")
        if kind not in _WITH_COMPONENT or not node.get("componentId"):
            continue
        try:
            component = _component(node["componentId"], assets, known, f"{path}{name}")
            if component.type != kind:
                found = f"its component is of type {component.type}"
                raise InputError(Problem(f"step {path}{name}, key type", f"{kind}, but {found}", component.type))
            node["componentId"] = component
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError.of(problems)
    entities = internals.nodes_of(bodies)
    for entity in entities.values():
        _settle(entity, assets)
    # The SDK moves loops after all other nodes.
    return {name: entities[name] for name in bodies}


def _component(identity: Any, assets: Assets, known: dict[str, Any], path: str) -> Any:
    """Return the component of the node at that path, by its id or by a spec in place of the id."""
    if isinstance(identity, str) and identity in known:
        return known[identity]
    try:
        body, label = components.body(identity, assets)
        spec = body["properties"]["componentSpec"]
        jobs = spec.pop("jobs", None)
        component = components.component(body, label, assets)
        if component.type == "pipeline" and not jobs:
            raise InputError(Problem(f"{label}, key jobs", "the pipeline has no jobs", "at least one job"))
    except InputError as error:
        at = f"step {path}, "
        raise InputError.of(replace(problem, where=f"{at}{problem.where}") for problem in error.problems) from None
    if component.type == "pipeline":
        # The SDK would drop all nodes if it cannot read one of them.
        internals.set_nodes(component, nodes(jobs, assets, known, f"{path}."))
    if isinstance(identity, str):
        known[identity] = component
    return component


def _settle(entity: Any, assets: Assets) -> None:
    """Convert the inputs or items of a node to the types of their ports, and their data to paths on this machine."""
    kind = type(entity).__name__
    if kind == "ParallelFor":
        ports.settle_items(entity.items, assets)
    elif hasattr(entity, "inputs"):
        ports.settle(entity.inputs, assets)
