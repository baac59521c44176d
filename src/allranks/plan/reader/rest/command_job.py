"""Read a command job from its REST body."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from allranks.plan.reader.rest import components, literals
from allranks.plan.reader.rest.assets import Assets
from allranks.plan.reader.settings import guessed_type
from allranks.sdk import internals


def read(name: str, properties: Mapping[str, Any], assets: Assets) -> Any:
    """Return the SDK's Command. Raise InputError, or any exception of the SDK for a body that it cannot read."""
    from azure.ai.ml.entities import Job

    body = copy.deepcopy(dict(properties))
    code, environment = body.pop("codeId", None), body.get("environmentId")
    body["outputs"] = {key: value for key, value in (body.get("outputs") or {}).items() if key != "default"}
    for value in (body.get("inputs") or {}).values():
        if value.get("uri"):
            value["uri"] = assets.data(value["uri"])
    job = internals.from_rest(Job, "JobBase", {"name": name, "properties": body})
    components.place(job.component, code, environment, assets)
    job.environment = job.component.environment
    # The component is anonymous. The SDK only gives it the job's name.
    internals.set_anonymous(job.component)
    for port_name, port in job.inputs.items():
        if isinstance(text := internals.data(port), str):
            value = literals.guessed(text)
            internals.set_data(port, value)
            job.component.inputs[port_name].type = guessed_type(value)
    return job
