"""Convert inputs and outputs of REST bodies to the SDK's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allranks.plan.reader import step_ports
from allranks.plan.reader.rest import literals
from allranks.plan.reader.rest.assets import Assets

_BINDING = "${{"


def inputs(rest: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a job's inputs: a text for a literal, an Input for data."""
    from azure.ai.ml._restclient.arm_ml_service.models import JobInput
    from azure.ai.ml.entities._job._input_output_helpers import from_rest_inputs_to_dataset_literal

    job_inputs = {name: JobInput._deserialize(dict(value), []) for name, value in (rest or {}).items() if value}
    return dict(from_rest_inputs_to_dataset_literal(job_inputs))


def outputs(rest: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a job's outputs, without the one that the service adds for its artifacts."""
    from azure.ai.ml._restclient.arm_ml_service.models import JobOutput
    from azure.ai.ml.entities._job._input_output_helpers import from_rest_data_outputs

    job_outputs = {name: JobOutput._deserialize(dict(value), []) for name, value in (rest or {}).items() if value}
    return {name: value for name, value in from_rest_data_outputs(job_outputs).items() if name != "default"}


def settle(given: Any, assets: Assets) -> None:
    """Convert the inputs of a node to the types of their ports, and their data to paths on this machine."""
    from azure.ai.ml import Input

    for _, port in step_ports.flat(given):
        data = port._data
        if isinstance(data, Input) and data.path:
            data.path = assets.data(str(data.path))
        elif isinstance(data, str) and _BINDING not in data and port._meta is not None:
            port._data = literals.of_type(data, str(port._meta.type))


def settle_items(items: Any, assets: Assets) -> None:
    """Convert the data in the items of a parallel_for loop to paths on this machine."""
    from azure.ai.ml import Input

    mappings = items.values() if isinstance(items, dict) else items if isinstance(items, list) else ()
    for item in mappings:
        for value in item.values():
            if isinstance(value, Input) and value.path:
                value.path = assets.data(str(value.path))
