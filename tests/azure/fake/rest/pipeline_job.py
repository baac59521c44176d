"""Read a pipeline job from its REST body."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from allranks.errors import InputError, Problem
from allranks.plan.ports import GraphInput, references
from allranks.plan.reader import step_ports
from allranks.plan.reader.context import plain, value_of
from allranks.plan.reader.settings import guessed_type
from allranks.sdk import internals
from fake.rest import components, sdk_parts
from fake.rest.components import Assets

_WITH_COMPONENT = ("command", "parallel", "pipeline", "sweep")
"""The types of nodes that run a component. Control flow nodes have none; the reader of pipelines rejects all others."""


def read(name: str, properties: Mapping[str, Any], assets: Assets) -> Any:
    """Return the SDK's PipelineJob. Raise InputError, or any exception of the SDK for a body that it cannot read."""
    from azure.ai.ml.entities import PipelineJob, PipelineJobSettings

    jobs = properties.get("jobs")
    if not isinstance(jobs, Mapping) or not jobs:
        raise InputError(Problem(f"job {name}, key jobs", "the pipeline has no jobs", "at least one job"))
    inputs = components.inputs(properties.get("inputs"))
    settings = {key: value for key, value in (properties.get("settings") or {}).items() if not key.startswith("_")}
    job = PipelineJob(
        name=name,
        display_name=properties.get("displayName"),
        description=properties.get("description"),
        experiment_name=properties.get("experimentName"),
        inputs=inputs,
        outputs=components.outputs(properties.get("outputs")),
        jobs=_nodes(jobs, assets),
        settings=PipelineJobSettings(**settings),
    )
    _set_types(job, inputs, assets)
    return job


def _set_types(job: Any, inputs: Mapping[str, Any], assets: Assets) -> None:
    """Set the types of the pipeline's inputs, which the body lacks, to those of the ports that they are bound to.

    An input that a step is bound to and that is not in the body is optional and has no value.
    """
    from azure.ai.ml import Input

    used, declared, values = _uses(job), job.component.inputs, dict(step_ports.flat(job.inputs))
    for name in dict.fromkeys((*inputs, *used)):
        value, meta = inputs.get(name), used.get(name)
        kind = plain(meta.type) if meta is not None and isinstance(meta.type, str) else None
        if isinstance(value, str):
            value = components.of_type(value, kind) if kind else components.guessed(value)
            sdk_parts.set_data(values[name], value)
            kind = kind or guessed_type(value)
        elif value is not None:
            value.path, kind = assets.data(str(value.path)), value.type
        declared[name] = Input(type=kind or "string", optional=value is None)


def _uses(job: Any) -> dict[str, Any]:
    """Return the pipeline's inputs that ports are bound to, each with the declaration of such a port.

    It is None for an input that is only part of a text, because that does not determine the input's type.
    """
    whole: dict[str, Any] = {}
    part: dict[str, Any] = {}
    for node in job.jobs.values():
        for _, port in step_ports.flat(getattr(node, "inputs", None) or {}):
            data = plain(internals.data(port))
            value = value_of(data) if isinstance(data, str) else None
            for reference in references(value):
                if isinstance(reference, GraphInput):
                    declarations = whole if value is reference else part
                    declared = internals.declaration(port) if value is reference else None
                    declarations.setdefault(reference.name, declared)
    return part | whole


def _nodes(jobs: Mapping[str, Any], assets: Assets, known: dict[str, Any] | None = None, path: str = "") -> Any:
    """Return the entities of a REST body's `jobs` by name, in the order of the body.

    known: the components read so far, by id; new ones are added, because nodes may share a component
    path:  the path of the node that contains these nodes, with a trailing dot; "" for the pipeline job itself

    Raise InputError with the problems of the components of all nodes, or any exception of the SDK for a node that it
    cannot read.
    """
    bodies = copy.deepcopy(dict(jobs))
    known = {} if known is None else known
    problems: list[Problem] = []
    trials = {}
    for name, node in bodies.items():
        kind = node.get("type", "command")
        holder = node.get("trial") or {} if kind == "sweep" else node
        if kind not in _WITH_COMPONENT or not holder.get("componentId"):
            continue
        try:
            component = _component(holder["componentId"], assets, known, f"{path}{name}")
            if kind == "sweep":
                trials[name] = component
                continue
            if component.type != kind:
                found = f"its component is of type {component.type}"
                raise InputError(Problem(f"step {path}{name}, key type", f"{kind}, but {found}", component.type))
            node["componentId"] = component
        except InputError as error:
            problems += error.problems
    if problems:
        raise InputError.of(problems)
    entities = sdk_parts.nodes_of(bodies)
    for name, component in trials.items():  # the SDK reads the id of a trial only
        internals.set_component(entities[name], component)
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
        sdk_parts.set_nodes(component, _nodes(jobs, assets, known, f"{path}."))
    if isinstance(identity, str):
        known[identity] = component
    return component


def _settle(entity: Any, assets: Assets) -> None:
    """Convert the inputs or items of a node to the types of their ports, and their data to paths on this machine."""
    kind = type(entity).__name__
    if kind == "ParallelFor":
        components.settle_items(entity.items, assets)
    elif hasattr(entity, "inputs"):
        components.settle(entity.inputs, assets)
