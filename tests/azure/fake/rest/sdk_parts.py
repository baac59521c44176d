"""The private parts of azure-ai-ml that only the reader of REST bodies uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from allranks.sdk import internals


def set_anonymous(asset: Any, anonymous: bool = True) -> None:
    """Set whether a component or an environment has no name of its own."""
    asset._is_anonymous = anonymous


def from_rest(entity: Any, kind: str, body: Mapping[str, Any]) -> Any:
    """Return the entity of a REST body. entity: its class, such as Job; kind: of the REST model"""
    return entity._from_rest_object(internals.rest_model(kind, body))


def nodes_of(bodies: dict[str, Any]) -> Any:
    """Return the nodes of a REST body's `jobs`, in which components stand in place of ids."""
    from azure.ai.ml.entities import PipelineComponent

    return PipelineComponent._resolve_sub_nodes(bodies)


def set_nodes(component: Any, nodes: Any) -> None:
    """Set the nodes of a pipeline component."""
    component._jobs = component._process_jobs(nodes)
