"""The private parts of azure-ai-ml that only the reader of REST bodies uses."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any


def set_anonymous(asset: Any, anonymous: bool = True) -> None:
    """Set whether a component or an environment has no name of its own."""
    asset._is_anonymous = anonymous


def set_data(port: Any, value: Any) -> None:
    """Bind a port to a value."""
    port._data = value


def set_inputs(component: Any, inputs: dict[str, Any]) -> None:
    """Set the declared inputs of a component."""
    component._inputs = inputs


def rest_model(kind: str, body: Mapping[str, Any]) -> Any:
    """Return the SDK's model of a REST body, such as JobBase, ComponentVersion, EnvironmentVersion, JobInput."""
    return getattr(import_module("azure.ai.ml._restclient.arm_ml_service.models"), kind)._deserialize(dict(body), [])


def inputs_of(rest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs of the REST models of a job's inputs: a text for a literal, an Input for data."""
    from azure.ai.ml.entities._job._input_output_helpers import from_rest_inputs_to_dataset_literal

    return dict(from_rest_inputs_to_dataset_literal(rest))


def outputs_of(rest: Mapping[str, Any]) -> dict[str, Any]:
    """Return the outputs of the REST models of a job's outputs."""
    from azure.ai.ml.entities._job._input_output_helpers import from_rest_data_outputs

    return dict(from_rest_data_outputs(rest))


def from_rest(entity: Any, kind: str, body: Mapping[str, Any]) -> Any:
    """Return the entity of a REST body. entity: its class, such as Job; kind: of the REST model"""
    return entity._from_rest_object(rest_model(kind, body))


def nodes_of(bodies: dict[str, Any]) -> Any:
    """Return the nodes of a REST body's `jobs`, in which components stand in place of ids."""
    from azure.ai.ml.entities import PipelineComponent

    return PipelineComponent._resolve_sub_nodes(bodies)


def set_nodes(component: Any, nodes: Any) -> None:
    """Set the nodes of a pipeline component."""
    component._jobs = component._process_jobs(nodes)
