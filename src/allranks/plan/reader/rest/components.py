"""Components and environments of the service as the SDK's entities, with their files on this machine."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from allranks.errors import InputError, Problem
from allranks.plan.reader.rest.assets import Assets

ANONYMOUS = "azureml_anonymous"
"""The name of components that have none."""


def component(identity: str, assets: Assets) -> Any:
    """A Component whose code and environment are here. Raises InputError."""
    from azure.ai.ml._restclient.arm_ml_service.models import ComponentVersion
    from azure.ai.ml.entities import Component

    body = copy.deepcopy(dict(assets.component(identity)))
    spec = body.get("properties", {}).get("componentSpec")
    if not isinstance(spec, dict):
        raise InputError(Problem(f"component {identity}", "its body has no componentSpec"))
    if spec.get("type") != "command":
        found = f"a component of type {spec.get('type')} is not yet run by the local engine"
        raise InputError(Problem(f"component {identity}", found, "a component of type command"))
    code, named = spec.pop("code", None), spec.get("environment")
    # What was included is in the code that was uploaded.
    spec.pop("additional_includes", None)
    made = Component._from_rest_object(ComponentVersion._deserialize(body, []))
    # What a file or a function defines has its name and version in the spec, under whatever name it is registered.
    made._is_anonymous = made.name == ANONYMOUS
    place(made, code, named, assets)
    return made


def place(made: Any, code: str | None, named: str | None, assets: Assets) -> None:
    """Gives a component its code and its environment, by their ids."""
    if code:
        made.code = str(assets.code(_bare(code)))
    if named:
        made.environment = environment(named, assets)


def environment(identity: str, assets: Assets) -> Any:
    """What a step's environment is: the name and version of a registered one, else what it is made of."""
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
    """The id of a registered environment as people write it: ``azureml:torch:3``; one of a registry stays as it is."""
    parts = identity.rstrip("/").split("/")
    if identity.startswith("azureml://") or len(parts) < len(("", "environments", "torch", "versions", "3")):
        return identity
    return f"azureml:{parts[-3]}:{parts[-1]}"


def _bare(identity: str) -> str:
    return identity.removeprefix("azureml:") if identity.startswith("azureml:/subscriptions") else identity
