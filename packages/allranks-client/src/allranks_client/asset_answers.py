"""The form in which the service returns an asset: with all of its keys, and without those that it drops.

The forms are those in azure-sdk-for-python's recordings of the service, which docs/reports/fake-service.md names.
Keys that the SDK's models lack, which were null in all recordings, are omitted.
"""

import json
from typing import Any

import yaml

from allranks_client.emulation import long_datastores

_ASSET: dict[str, Any] = {
    "description": None,
    "tags": {},
    "properties": {},
    "isArchived": False,
    "isAnonymous": False,
}
_PROVISIONED = {"provisioningState": "Succeeded"}
_ADDED: dict[str, dict[str, Any]] = {
    "codes": _PROVISIONED,
    "environments": {
        **_PROVISIONED,
        "environmentType": "UserCreated",
        "condaFile": "",
        "osType": "Linux",
        "autoRebuild": "Disabled",
        "stage": "Logged",
    },
    "components": {},
    "data": {},
    "models": {**_PROVISIONED, "flavors": {}, "jobName": None, "stage": "None"},
}
"""The keys that the service adds to a version."""

_DATASTORE = "azureml://datastores/"


def shown_properties(kind: str, sent: dict[str, Any], scope: str) -> dict[str, Any]:
    """Return the properties of a version. scope: the id of the workspace or registry"""
    shown = {**_ASSET, **_ADDED[kind], **sent}
    if kind == "codes":
        shown["isAnonymous"] = False
    elif kind == "environments" and shown["condaFile"]:
        shown["condaFile"] = json.dumps(yaml.safe_load(shown["condaFile"]), indent=2, sort_keys=True)
    elif kind == "data" and str(shown.get("dataUri")).startswith(_DATASTORE):
        shown["dataUri"] = long_datastores(scope) + shown["dataUri"].removeprefix(_DATASTORE)
    elif kind == "models":
        shown["modelUri"] = shown["modelUri"].replace("/resourcegroups/", "/resourceGroups/")
    elif kind == "components":
        # Only the spec contains the description.
        shown |= {"description": None, "componentSpec": _component(sent["componentSpec"])}
    return shown


_DROPPED = {"_source", "sourceJobId"}
_DROPPED_OF = {
    "command": {"resources"},
    "parallel": {"resources"},
    "pipeline": {"jobs"},
}
_PARALLEL = {"error_threshold": -1, "retry_settings": {"max_retries": 3, "timeout": 60}}
_LITERALS = ("string", "integer", "number", "boolean")


def _component(spec: dict[str, Any]) -> dict[str, Any]:
    """Return the spec of a component: numbers and booleans as text, data before literals, ports without modes, the
    number of instances without their size."""
    kind = spec.get("type", "")
    dropped = _DROPPED | _DROPPED_OF.get(kind, set())
    shown = {key: value for key, value in spec.items() if key not in dropped}
    shown.setdefault("is_deterministic", kind != "pipeline")
    for side, given in (("inputs", {"optional": False}), ("outputs", {})):
        ports = {name: {**given, **port} for name, port in (spec.get(side) or {}).items()}
        shown[side] = {name: {key: port[key] for key in port if key != "mode"} for name, port in ports.items()}
    shown["inputs"] = dict(sorted(shown["inputs"].items(), key=lambda port: port[1].get("type") in _LITERALS))
    if kind == "command":
        shown["resources"] = {"instance_count": (spec.get("resources") or {}).get("instance_count", 1)}
    elif kind == "parallel":
        shown = {**_PARALLEL, **shown}
    if distribution := spec.get("distribution"):
        shown["distribution"] = {**distribution, "type": distribution["type"].capitalize()}
    return dict(_texts(shown))


def _texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _texts(inner) for key, inner in value.items() if inner not in (None, {}, [])}
    if isinstance(value, list):
        return [_texts(inner) for inner in value]
    return str(value) if isinstance(value, (bool, int, float)) else value
