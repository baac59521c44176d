"""A pipeline job."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from allranks.errors import InputError, Problem
from allranks.plan.ports import GraphInput, references
from allranks.plan.reader import step_ports
from allranks.plan.reader.bindings import value_of
from allranks.plan.reader.context import plain
from allranks.plan.reader.rest import components, literals, ports
from allranks.plan.reader.rest.assets import Assets
from allranks.plan.reader.settings import guessed_type


def read(name: str, properties: Mapping[str, Any], assets: Assets) -> Any:
    """The SDK's PipelineJob. Raises InputError, or whatever the SDK raises of a body that it cannot read."""
    from azure.ai.ml.entities import PipelineJob
    from azure.ai.ml.entities._component.pipeline_component import PipelineComponent
    from azure.ai.ml.entities._job.pipeline.pipeline_job_settings import PipelineJobSettings

    nodes = PipelineComponent._resolve_sub_nodes(_jobs(name, properties, assets))
    for node in nodes.values():
        if hasattr(node, "inputs"):
            ports.settle(node.inputs, assets)
    inputs = ports.inputs(properties.get("inputs"))
    settings = {key: value for key, value in (properties.get("settings") or {}).items() if not key.startswith("_")}
    job = PipelineJob(
        name=name,
        display_name=properties.get("displayName"),
        description=properties.get("description"),
        experiment_name=properties.get("experimentName"),
        inputs=inputs,
        outputs=ports.outputs(properties.get("outputs")),
        jobs=nodes,
        settings=PipelineJobSettings(**settings),
    )
    _give_types(job, inputs, assets)
    return job


def _jobs(name: str, properties: Mapping[str, Any], assets: Assets) -> dict[str, Any]:
    """The nodes, each with its component in place of the id. Raises InputError with what is wrong of all of them."""
    jobs = copy.deepcopy(properties.get("jobs"))
    if not isinstance(jobs, dict) or not jobs:
        raise InputError(Problem(f"job {name}, key jobs", "the pipeline has no jobs", "at least one job"))
    problems: list[Problem] = []
    known: dict[str, Any] = {}
    for node_name, node in jobs.items():
        identity = node.get("componentId")
        if node.get("type", "command") != "command" or not isinstance(identity, str):
            continue  # the reader of pipelines says that it is not run
        try:
            if identity not in known:
                known[identity] = components.component(identity, assets)
            node["componentId"] = known[identity]
        except InputError as error:
            problems += [Problem(f"step {node_name}, {p.where}", p.found, p.expected, p.fix) for p in error.problems]
    if problems:
        raise InputError.of(problems)
    return jobs


def _give_types(job: Any, given: Mapping[str, Any], assets: Assets) -> None:
    """Gives the pipeline's inputs the types that the wire does not carry: those of the ports they are bound to.

    An input that a step is bound to and that is not in the body is an optional one that has no value.
    """
    from azure.ai.ml import Input

    used, declared, values = _uses(job), job.component.inputs, dict(step_ports.flat(job.inputs))
    for name in dict.fromkeys((*given, *used)):
        value, meta = given.get(name), used.get(name)
        kind = plain(meta.type) if meta is not None and isinstance(meta.type, str) else None
        if isinstance(value, str):
            value = literals.of_type(value, kind) if kind else literals.guessed(value)
            values[name]._data = value
            kind = kind or guessed_type(value)
        elif value is not None:
            value.path, kind = assets.data(str(value.path)), value.type
        declared[name] = Input(type=kind or "string", optional=value is None)


def _uses(job: Any) -> dict[str, Any]:
    """The pipeline's inputs that ports are bound to, with the declaration of such a port.

    A port that takes an input as a part of its text says nothing of the input's type: None.
    """
    whole: dict[str, Any] = {}
    part: dict[str, Any] = {}
    for node in job.jobs.values():
        for _, port in step_ports.flat(getattr(node, "inputs", None) or {}):
            data = plain(port._data)
            value = value_of(data) if isinstance(data, str) else None
            for reference in references(value):
                if isinstance(reference, GraphInput):
                    met = whole if value is reference else part
                    met.setdefault(reference.name, port._meta if value is reference else None)
    return part | whole
