"""Convert the REST body of a job, as in Azure ML's management API, to a plan."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.plan.graph import Plan
from allranks.plan.reader import pipeline
from allranks.plan.reader.settings import guessed_type
from allranks.sdk import internals, session, validation_errors
from fake.rest import components, pipeline_job, sdk_parts
from fake.rest.components import Assets

__all__ = ["Assets", "read_rest"]


def _read_command(name: str, properties: Mapping[str, Any], assets: Assets) -> Any:
    """Return the SDK's Command. Raise InputError, or any exception of the SDK for a body that it cannot read."""
    from azure.ai.ml.entities import Job

    body = copy.deepcopy(dict(properties))
    code, environment = body.pop("codeId", None), body.get("environmentId")
    body["outputs"] = {key: value for key, value in (body.get("outputs") or {}).items() if key != "default"}
    for value in (body.get("inputs") or {}).values():
        if value.get("uri"):
            value["uri"] = assets.data(value["uri"])
    job = sdk_parts.from_rest(Job, "JobBase", {"name": name, "properties": body})
    components.place(job.component, code, environment, assets)
    job.environment = job.component.environment
    # The component is anonymous. The SDK only gives it the job's name.
    sdk_parts.set_anonymous(job.component)
    for port_name, port in job.inputs.items():
        if isinstance(text := internals.data(port), str):
            value = components.guessed(text)
            sdk_parts.set_data(port, value)
            job.component.inputs[port_name].type = guessed_type(value)
    return job


def _read_sweep(name: str, properties: Mapping[str, Any], assets: Assets) -> Any:
    """Return the SDK's SweepJob. Raise as `_read_command`."""
    from azure.ai.ml.entities import Job

    body = copy.deepcopy(dict(properties))
    code, environment = body["trial"].pop("codeId", None), body["trial"].get("environmentId")
    body["outputs"] = {key: value for key, value in (body.get("outputs") or {}).items() if key != "default"}
    job = sdk_parts.from_rest(Job, "JobBase", {"name": name, "properties": body})
    components.place(job.trial, code, environment, assets)
    return job


_KINDS = {"Pipeline": pipeline_job.read, "Command": _read_command, "Sweep": _read_sweep}


def read_rest(body: Mapping[str, Any], assets: Assets, snapshots: Path) -> Plan:
    """Return the plan of a pipeline or command job.

    body:      the job as sent with PUT or received with GET: a mapping with `properties`
    assets:    resolves the ids in the body
    snapshots: the folder to which code is copied; it is created if necessary

    A body has no types for the inputs of the pipeline itself. They have the types of the ports that they are bound to.
    Raise InputError, with all problems, if the body cannot be read or the local engine cannot run it.
    """
    name, properties = str(body.get("name") or "job"), body.get("properties")
    if not isinstance(properties, Mapping):
        raise InputError(Problem(f"job {name}", "the body has no properties", "a job as Azure ML's REST API takes it"))
    kind = str(properties.get("jobType"))
    if kind not in _KINDS:
        found = f"a job of type {kind} is not yet run by the local engine"
        raise InputError(Problem(f"job {name}, key jobType", found, " or ".join(_KINDS)))
    with session.session(client=False):
        try:
            job = _KINDS[kind](name, properties, assets)
        except InputError:
            raise
        except Exception as error:
            # Any exception of the SDK means that it cannot read the body.
            message = validation_errors.one_line(error) or type(error).__name__
            raise InputError(Problem(f"job {name}", f"the SDK cannot read the body: {message}")) from error
        return pipeline.read(job, snapshots)
