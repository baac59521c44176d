"""Convert components, environments, assets and ports of REST bodies to the entities of the SDK."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

from allranks.errors import InputError, Problem
from allranks.plan.reader import step_ports
from allranks.sdk import internals
from fake.rest import sdk_parts


class Assets(Protocol):
    """Resolves ids in REST bodies to REST bodies or to folders on this machine.

    Every method raises InputError if the asset does not exist.
    """

    def component(self, identity: str) -> Mapping[str, Any]:
        """Return the body of a component's version."""

    def environment(self, identity: str) -> Mapping[str, Any]:
        """Return the body of an environment's version."""

    def code(self, identity: str) -> Path:
        """Return the folder, or the single file, of a version of code."""

    def build_context(self, uri: str) -> Path:
        """Return the folder of an uploaded Dockerfile."""

    def data(self, uri: str) -> str:
        """Return the local path of data, or the URI itself if this machine has no copy."""


_BINDING = "${{"
_Literal = str | int | float | bool
_TRUTH = {"True": True, "False": False, "true": True, "false": False}


def inputs(rest: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a job's inputs: a text for a literal, an Input for data."""
    job_inputs = {name: sdk_parts.rest_model("JobInput", value) for name, value in (rest or {}).items() if value}
    return sdk_parts.inputs_of(job_inputs)


def outputs(rest: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a job's outputs, without the one that the service adds for its artifacts."""
    job_outputs = {name: sdk_parts.rest_model("JobOutput", value) for name, value in (rest or {}).items() if value}
    return {name: value for name, value in sdk_parts.outputs_of(job_outputs).items() if name != "default"}


def settle(given: Any, assets: Assets) -> None:
    """Convert the inputs of a node to the types of their ports, and their data to paths on this machine."""
    from azure.ai.ml import Input

    for _, port in step_ports.flat(given):
        data, declared = internals.data(port), internals.declaration(port)
        if isinstance(data, Input) and data.path:
            data.path = assets.data(str(data.path))
        elif isinstance(data, str) and _BINDING not in data and declared is not None:
            sdk_parts.set_data(port, of_type(data, str(declared.type)))


def settle_items(items: Any, assets: Assets) -> None:
    """Convert the data in the items of a parallel_for loop to paths on this machine."""
    from azure.ai.ml import Input

    mappings = items.values() if isinstance(items, dict) else items if isinstance(items, list) else ()
    for item in mappings:
        for value in item.values():
            if isinstance(value, Input) and value.path:
                value.path = assets.data(str(value.path))


def of_type(text: str, kind: str) -> _Literal:
    """Return the value of a port of that type, or the text itself if the SDK would write the value differently."""
    readers = {"integer": (int,), "number": (int, _finite), "boolean": (_TRUTH.__getitem__,)}.get(kind, ())
    return _first(text, readers)


def guessed(text: str) -> _Literal:
    """Return the value of a text whose type is unknown."""
    return _first(text, (int, _finite, {"True": True, "False": False}.__getitem__))


def _first(text: str, readers: tuple[Callable[[str], _Literal], ...]) -> _Literal:
    for read in readers:
        try:
            value = read(text)
        except (ValueError, KeyError):
            continue
        if str(value) == text or isinstance(value, bool):
            return value
    return text


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value


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
    if spec.get("type") not in ("command", "parallel", "pipeline"):
        found = f"a component of type {spec.get('type')} is not yet run by the local engine"
        raise InputError(Problem(label, found, "a component of type command, parallel or pipeline"))
    program = spec["task"] if spec["type"] == "parallel" else spec
    code, environment_id = program.pop("code", None), program.get("environment")
    # The uploaded code contains the included files.
    spec.pop("additional_includes", None)
    entity = sdk_parts.from_rest(Component, "ComponentVersion", body)
    # The spec has the name and version from the file or function, whatever name the component is registered under.
    sdk_parts.set_anonymous(entity, entity.name == ANONYMOUS)
    # The SDK moves groups of inputs after all other inputs.
    order = list(dict.fromkeys(name.partition(".")[0] for name in spec.get("inputs") or {}))
    sdk_parts.set_inputs(entity, dict(sorted(entity.inputs.items(), key=lambda port: order.index(port[0]))))
    if spec["type"] != "pipeline":
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
    entity = sdk_parts.from_rest(Environment, "EnvironmentVersion", body)
    sdk_parts.set_anonymous(entity)
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
