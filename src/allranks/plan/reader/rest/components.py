"""Convert components and environments of the service to the SDK's entities, with their files on this machine."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from allranks.errors import InputError, Problem
from allranks.plan.reader.rest.assets import Assets
from allranks.sdk import internals

ANONYMOUS = "azureml_anonymous"
"""The name of components without a name."""


def body(identity: str | Mapping[str, Any], assets: Assets) -> tuple[dict[str, Any], str]:
    """Return a copy of a component's REST body, and its name for messages.

    identity: an id, or a spec in place of it

    Raise InputError if there is no such component, or if it has no spec.
    """
    if isinstance(identity, Mapping):
        spec = identity.get("properties", {}).get("componentSpec", identity)
        label = f"component {spec.get('name') or ANONYMOUS}"
        anonymous = {"name": ANONYMOUS, "properties": {"componentSpec": dict(spec), "isAnonymous": True}}
        return copy.deepcopy(anonymous), label
    registered = copy.deepcopy(dict(assets.component(identity)))
    if not isinstance(registered.get("properties", {}).get("componentSpec"), dict):
        raise InputError(Problem(f"component {identity}", "its body has no componentSpec"))
    return registered, f"component {identity}"


def component(body: dict[str, Any], label: str, assets: Assets) -> Any:
    """Return the Component of a REST body, with its code and its environment on this machine; of a pipeline component,
    without its nodes.

    The body is changed. Raise InputError if the component cannot be read.
    """
    from azure.ai.ml.entities import Component

    spec = body["properties"]["componentSpec"]
    if spec.get("type") not in ("command", "pipeline"):
        found = f"a component of type {spec.get('type')} is not yet run by the local engine"
        raise InputError(Problem(label, found, "a component of type command or pipeline"))
    code, environment_id = spec.pop("code", None), spec.get("environment")
    # The uploaded code contains the included files.
    spec.pop("additional_includes", None)
    entity = internals.from_rest(Component, "ComponentVersion", body)
    # The spec has the name and version from the file or function, whatever name the component is registered under.
    internals.set_anonymous(entity, entity.name == ANONYMOUS)
    # The SDK moves groups of inputs after all other inputs.
    order = list(dict.fromkeys(name.partition(".")[0] for name in spec.get("inputs") or {}))
    internals.set_inputs(entity, dict(sorted(entity.inputs.items(), key=lambda port: order.index(port[0]))))
    if spec["type"] == "command":
        place(entity, code, environment_id, assets)
    return entity


def place(made: Any, code: str | None, named: str | None, assets: Assets) -> None:
    """Set the code and the environment of a component by their ids."""
    if code:
        made.code = str(assets.code(_bare(code)))
    if named:
        made.environment = environment(named, assets)


def environment(identity: str, assets: Assets) -> Any:
    """Return a step's environment: the name and version of a registered one, else the SDK's Environment."""
    from azure.ai.ml.entities import Environment

    body = copy.deepcopy(dict(assets.environment(_bare(identity))))
    properties: Mapping[str, Any] = body.get("properties", {})
    if not properties.get("isAnonymous"):
        return _short(identity)
    entity = internals.from_rest(Environment, "EnvironmentVersion", body)
    internals.set_anonymous(entity)
    if entity.build is not None:
        entity.build.path = str(assets.build_context(str(entity.build.path)))
    return entity


def _short(identity: str) -> str:
    """Return the id of a registered environment as users write it, ``azureml:torch:3``; of a registry, unchanged."""
    parts = identity.rstrip("/").split("/")
    if identity.startswith("azureml://") or len(parts) < len(("", "environments", "torch", "versions", "3")):
        return identity
    return f"azureml:{parts[-3]}:{parts[-1]}"


def _bare(identity: str) -> str:
    return identity.removeprefix("azureml:") if identity.startswith("azureml:/subscriptions") else identity
