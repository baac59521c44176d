"""Components and environments of the service as the SDK's entities, with their files on this machine."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from allranks.errors import InputError, Problem
from allranks.plan.reader.rest.assets import Assets

ANONYMOUS = "azureml_anonymous"
"""The name of components that have none."""


def body(identity: str | Mapping[str, Any], assets: Assets) -> tuple[dict[str, Any], str]:
    """Return a copy of a component's REST body, and what messages call it.

    identity: an id; or a spec that stands in place of one

    Raise InputError where there is no such component, or where it has no spec.
    """
    if isinstance(identity, Mapping):
        spec = identity.get("properties", {}).get("componentSpec", identity)
        label = f"component {spec.get('name') or ANONYMOUS}"
        made = {"name": ANONYMOUS, "properties": {"componentSpec": dict(spec), "isAnonymous": True}}
        return copy.deepcopy(made), label
    found = copy.deepcopy(dict(assets.component(identity)))
    if not isinstance(found.get("properties", {}).get("componentSpec"), dict):
        raise InputError(Problem(f"component {identity}", "its body has no componentSpec"))
    return found, f"component {identity}"


def component(body: dict[str, Any], label: str, assets: Assets) -> Any:
    """Return the Component of a REST body, with its code and its environment on this machine; one of type pipeline
    without its nodes.

    Changes the body. Raise InputError.
    """
    from azure.ai.ml._restclient.arm_ml_service.models import ComponentVersion
    from azure.ai.ml.entities import Component

    spec = body["properties"]["componentSpec"]
    if spec.get("type") not in ("command", "pipeline"):
        found = f"a component of type {spec.get('type')} is not yet run by the local engine"
        raise InputError(Problem(label, found, "a component of type command or pipeline"))
    code, named = spec.pop("code", None), spec.get("environment")
    # What was included is in the code that was uploaded.
    spec.pop("additional_includes", None)
    made = Component._from_rest_object(ComponentVersion._deserialize(body, []))
    # What a file or a function defines has its name and version in the spec, under whatever name it is registered.
    made._is_anonymous = made.name == ANONYMOUS
    # The SDK puts groups of inputs behind all other inputs.
    order = list(dict.fromkeys(name.partition(".")[0] for name in spec.get("inputs") or {}))
    made._inputs = dict(sorted(made.inputs.items(), key=lambda port: order.index(port[0])))
    if spec["type"] == "command":
        place(made, code, named, assets)
    return made


def place(made: Any, code: str | None, named: str | None, assets: Assets) -> None:
    """Give a component its code and its environment, by their ids."""
    if code:
        made.code = str(assets.code(_bare(code)))
    if named:
        made.environment = environment(named, assets)


def environment(identity: str, assets: Assets) -> Any:
    """Return what a step's environment is: the name and version of a registered one, else what it is made of."""
    from azure.ai.ml._restclient.arm_ml_service.models import EnvironmentVersion
    from azure.ai.ml.entities import Environment

    body = copy.deepcopy(dict(assets.environment(_bare(identity))))
    properties: Mapping[str, Any] = body.get("properties", {})
    if not properties.get("isAnonymous"):
        return _short(identity)
    made = Environment._from_rest_object(EnvironmentVersion._deserialize(body, []))
    made._is_anonymous = True
    if made.build is not None:
        made.build.path = str(assets.build_context(str(made.build.path)))
    return made


def _short(identity: str) -> str:
    """Return the id of a registered environment as people write it, ``azureml:torch:3``; of a registry, as it is."""
    parts = identity.rstrip("/").split("/")
    if identity.startswith("azureml://") or len(parts) < len(("", "environments", "torch", "versions", "3")):
        return identity
    return f"azureml:{parts[-3]}:{parts[-1]}"


def _bare(identity: str) -> str:
    return identity.removeprefix("azureml:") if identity.startswith("azureml:/subscriptions") else identity
