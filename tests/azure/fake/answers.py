"""How the service shows what it was sent: with every key that it has, in its own forms, and without what it drops.

Seen in azure-sdk-for-python's recordings of the service: docs/azure.md says which. Keys that the SDK's models lack,
which were null in all of them, are left out.
"""

from __future__ import annotations

import json
from typing import Any

import yaml

from fake.names import GROUP, SUBSCRIPTION, WORKSPACE

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
"""What the service says of a version although nobody sent it."""

_DATASTORE = "azureml://datastores/"
_IN_WORKSPACE = f"azureml://subscriptions/{SUBSCRIPTION}/resourcegroups/{GROUP}/workspaces/{WORKSPACE}/datastores/"


def asset(kind: str, sent: dict[str, Any]) -> dict[str, Any]:
    """The properties of a version."""
    shown = {**_ASSET, **_ADDED[kind], **sent}
    if kind == "codes":
        shown["isAnonymous"] = False
    elif kind == "environments" and shown["condaFile"]:
        shown["condaFile"] = json.dumps(yaml.safe_load(shown["condaFile"]), indent=2, sort_keys=True)
    elif kind == "data" and str(shown.get("dataUri")).startswith(_DATASTORE):
        shown["dataUri"] = _IN_WORKSPACE + shown["dataUri"].removeprefix(_DATASTORE)
    elif kind == "models":
        shown["modelUri"] = shown["modelUri"].replace("/resourcegroups/", "/resourceGroups/")
    elif kind == "components":
        # The description is the spec's alone.
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
    """A component's spec: numbers and truth as text, data before literals and without modes, a count of instances, but
    no size."""
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


_JOB: dict[str, Any] = {
    "description": None,
    "tags": {},
    "properties": {},
    "computeId": None,
    "isArchived": False,
    "identity": None,
    "componentId": None,
    "notificationSetting": None,
    "inputs": {},
    "outputs": {},
}
_RESOURCES: dict[str, Any] = {"instanceCount": 1, "instanceType": None, "properties": {}, "dockerArgs": None}
_JOB_OF: dict[str, dict[str, Any]] = {
    "Pipeline": {"settings": {}, "sourceJobId": None},
    "Command": {
        "codeId": None,
        "distribution": None,
        "limits": None,
        "environmentVariables": {},
        "parameters": {},
        "queueSettings": None,
    },
    "Sweep": {"earlyTermination": None, "queueSettings": None},
}
_RANDOM = {"seed": None, "logbase": None, "rule": "Random"}
_RAY = ("port", "address", "includeDashboard", "dashboardPort", "headNodeAdditionalArgs", "workerNodeAdditionalArgs")
_INPUT = {"description": None}
_DATA_INPUT = {**_INPUT, "uri": None, "mode": "ReadOnlyMount"}
_OUTPUT = {"description": None, "uri": None, "assetName": None, "mode": "ReadWriteMount"}


def job(sent: dict[str, Any]) -> dict[str, Any]:
    """The properties of a job, without what its state says."""
    kind = sent["jobType"]
    shown = {**_JOB, **_JOB_OF[kind], **sent}
    if kind == "Command":
        shown["resources"] = {**_RESOURCES, "shmSize": "2g", **(sent.get("resources") or {})}
        if (sent.get("distribution") or {}).get("distributionType") == "Ray":
            shown["distribution"] = {**dict.fromkeys(_RAY), **sent["distribution"]}
    elif kind == "Sweep":
        trial = sent["trial"]
        shown["trial"] = {
            "distribution": None,
            **trial,
            "resources": {**_RESOURCES, "properties": None, **(trial.get("resources") or {})},
        }
        shown["limits"] = {"trialTimeout": None, **sent["limits"]}
        if sent["samplingAlgorithm"]["samplingAlgorithmType"] == "Random":
            shown["samplingAlgorithm"] = {**_RANDOM, **sent["samplingAlgorithm"]}
        shown["objective"] = {**sent["objective"], "goal": sent["objective"]["goal"].capitalize()}
    shown["inputs"] = {
        name: {**(_INPUT if port.get("jobInputType") == "literal" else _DATA_INPUT), **port}
        for name, port in shown["inputs"].items()
    }
    shown["outputs"] = {name: {**_OUTPUT, **port} for name, port in shown["outputs"].items()}
    return shown


def scheduled_job(sent: dict[str, Any]) -> dict[str, Any]:
    """The job of a schedule, which never runs itself."""
    return {**job(sent), "status": "NotStarted", "services": None}
