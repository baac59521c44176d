"""Convert inputs and outputs of REST bodies to the SDK's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allranks.plan.reader import step_ports
from allranks.plan.reader.rest import literals
from allranks.plan.reader.rest.assets import Assets
from allranks.sdk import internals

_BINDING = "${{"


def inputs(rest: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a job's inputs: a text for a literal, an Input for data."""
    job_inputs = {name: internals.rest_model("JobInput", value) for name, value in (rest or {}).items() if value}
    return dict(internals.from_rest_inputs(job_inputs))


def outputs(rest: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a job's outputs, without the one that the service adds for its artifacts."""
    job_outputs = {name: internals.rest_model("JobOutput", value) for name, value in (rest or {}).items() if value}
    return {name: value for name, value in internals.from_rest_data_outputs(job_outputs).items() if name != "default"}


def settle(given: Any, assets: Assets) -> None:
    """Convert the inputs of a node to the types of their ports, and their data to paths on this machine."""
    from azure.ai.ml import Input

    for _, port in step_ports.flat(given):
        data, declared = internals.data(port), internals.declaration(port)
        if isinstance(data, Input) and data.path:
            data.path = assets.data(str(data.path))
        elif isinstance(data, str) and _BINDING not in data and declared is not None:
            internals.set_data(port, literals.of_type(data, str(declared.type)))


def settle_items(items: Any, assets: Assets) -> None:
    """Convert the data in the items of a parallel_for loop to paths on this machine."""
    from azure.ai.ml import Input

    mappings = items.values() if isinstance(items, dict) else items if isinstance(items, list) else ()
    for item in mappings:
        for value in item.values():
            if isinstance(value, Input) and value.path:
                value.path = assets.data(str(value.path))
