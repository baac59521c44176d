"""Answers of the real service, as azure-sdk-for-python's recordings show them. Written by hand:
docs/reports/fake-service.md says what was compared.
"""

import re
from collections.abc import Iterator
from typing import Any

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}\+00:00")
GUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
CREATED = {"createdAt": TIME, "createdBy": str, "createdByType": "User"}
CHANGED = {**CREATED, "lastModifiedAt": TIME, "lastModifiedBy": str, "lastModifiedByType": "User"}
SERVICE = {"jobServiceType": str, "endpoint": str, **dict.fromkeys(("port", "status", "errorMessage"))}
SERVICE |= {"properties": None, "nodes": None}
ASSET = {"description": None, "tags": {}, "properties": {}, "isArchived": False, "isAnonymous": False}
JOB = {
    "description": None,
    "tags": {},
    "properties": dict,
    "displayName": str,
    "experimentName": str,
    "services": {"Studio": SERVICE, "Tracking": SERVICE},
    "computeId": str,
    "isArchived": False,
    "notificationSetting": None,
    **dict.fromkeys(("identity", "componentId")),
}
RESOURCES = {"instanceCount": 1, "dockerArgs": None, "instanceType": None}
DEFAULT_OUTPUT = {
    "description": None,
    "uri": re.compile("azureml://datastores/workspaceartifactstore/ExperimentRun/dcid.*"),
    "assetName": None,
    "mode": "ReadWriteMount",
    "jobOutputType": "uri_folder",
}
SCHEDULE = {
    "description": None,
    "tags": {},
    "properties": {},
    "displayName": None,
    "isEnabled": True,
    "trigger": dict,
    "action": {"actionType": "CreateJob", "jobDefinition": dict},
}
OPERATION = {"id": str, "name": str, "status": "Succeeded", "startTime": TIME, "endTime": TIME}


def error(message: str | re.Pattern[str], *inner: str) -> dict[str, Any]:
    nested = None
    for code in reversed(inner):
        nested = {"code": code, "innerError": nested}
    more: dict[str, Any] = {"ComponentName": "managementfrontend", "Correlation": {"operation": str, "request": str}}
    more |= {"InnerError": nested} if inner else {}
    listed = [{"type": kind, "info": {"value": value}} for kind, value in more.items()]
    return {"error": {"code": str, "message": message, "details": [], "additionalInfo": listed}}


ANSWERS: dict[str, tuple[int, Any]] = {
    "PUT environments/torch/versions/1": (
        201,
        {
            "properties": {
                **ASSET,
                "image": "python:3.12",
                "condaFile": '{\n  "channels": [\n    "conda-forge"\n  ],\n  "name": "c"\n}',
                "environmentType": "UserCreated",
                "osType": "Linux",
                "autoRebuild": "Disabled",
                "stage": "Logged",
                "provisioningState": "Succeeded",
            },
            "systemData": CHANGED,
        },
    ),
    "PUT components/train/versions/1": (
        201,
        {
            "properties": {
                **ASSET,
                "properties": {"client_component_hash": str},
                "componentSpec": {
                    "$schema": str,
                    "name": "train",
                    "version": "1",
                    "type": "command",
                    "is_deterministic": "True",
                    "description": "trains",
                    "inputs": {
                        "data": {"type": "uri_folder", "optional": "False"},
                        "rate": {"type": "number", "optional": "True", "default": "0.5"},
                    },
                    "outputs": {"again": {"type": "boolean"}},
                    "command": str,
                    "environment": str,
                    "resources": {"instance_count": "2"},
                    "distribution": {"type": "Pytorch", "process_count_per_instance": "4"},
                },
            },
            "systemData": CHANGED,
        },
    ),
    "PUT components/score/versions/1": (
        201,
        {
            "properties": {
                **ASSET,
                "properties": {"client_component_hash": str},
                "componentSpec": {
                    "name": "score",
                    "version": "1",
                    "type": "parallel",
                    "is_deterministic": "True",
                    "inputs": {"data": {"type": "uri_folder", "optional": "False"}},
                    "outputs": {"scores": {"type": "uri_file"}},
                    "input_data": "${{inputs.data}}",
                    "mini_batch_size": "5",
                    "mini_batch_error_threshold": "1",
                    "error_threshold": "-1",
                    "retry_settings": {"max_retries": "3", "timeout": "60"},
                    "task": {"type": "run_function", "code": str, "entry_script": "score.py", "environment": str},
                },
            },
            "systemData": CHANGED,
        },
    ),
    "PUT components/copy/versions/1": (
        201,
        {
            "properties": {
                **ASSET,
                "properties": {"client_component_hash": str},
                "componentSpec": {
                    "name": "copy",
                    "version": "1",
                    "type": "data_transfer",
                    "is_deterministic": "True",
                    "inputs": {"a": {"type": "uri_folder", "optional": "False"}},
                    "outputs": {"b": {"type": "uri_folder"}},
                    "task": "copy_data",
                    "data_copy_mode": "fail_if_conflict",
                },
            },
            "systemData": CHANGED,
        },
    ),
    "PUT models/net/versions/1": (
        201,
        {
            "properties": {
                **ASSET,
                "flavors": {},
                "modelType": "custom_model",
                "modelUri": re.compile("azureml://subscriptions/.*/resourceGroups/.*/paths/.*"),
                "jobName": None,
                "provisioningState": "Succeeded",
                "stage": "None",
            },
            "systemData": CHANGED,
        },
    ),
    "GET components": (
        200,
        {
            "value": [
                {
                    "id": str,
                    "name": "train",
                    "type": "Microsoft.MachineLearningServices/workspaces/components",
                    "properties": {
                        "description": "",
                        "tags": {},
                        "properties": {},
                        "isArchived": False,
                        "latestVersion": None,
                        "nextVersion": re.compile(r"\d{4}(-\d\d){5}-\d{7}"),
                    },
                    "systemData": CHANGED,
                }
            ]
        },
    ),
    "PUT data/words/versions/1": (
        201,
        {
            "properties": {
                **ASSET,
                "dataType": "uri_file",
                "dataUri": re.compile("azureml://subscriptions/.*/datastores/workspaceblobstore/paths/.*"),
                "properties": dict,
            },
            "systemData": {**CREATED, "lastModifiedAt": TIME},
        },
    ),
    "PUT jobs/pipeline": (
        201,
        {
            "properties": {
                **JOB,
                "jobType": "Pipeline",
                "status": "Preparing",
                "settings": {"_source": "YAML.JOB"},
                "jobs": {"a": dict, "nested": dict},
                "inputs": {"rate": {"description": None, "jobInputType": "literal", "value": "3"}},
                "outputs": {},
                "sourceJobId": None,
            },
            "systemData": CREATED,
        },
    ),
    "PUT jobs/command": (
        201,
        {
            "properties": {
                **JOB,
                "jobType": "Command",
                "status": "Starting",
                "command": "echo",
                "codeId": None,
                "environmentId": str,
                "environmentVariables": {},
                "resources": {**RESOURCES, "properties": {}, "shmSize": "2g"},
                "inputs": {},
                "outputs": {"default": DEFAULT_OUTPUT},
                "distribution": None,
                "limits": None,
                "parameters": {},
                "queueSettings": None,
            },
            "systemData": CREATED,
        },
    ),
    "PUT jobs/ray": (
        201,
        {
            "properties": {
                **JOB,
                "jobType": "Command",
                "status": "Starting",
                "command": "echo",
                "codeId": None,
                "environmentId": str,
                "environmentVariables": {},
                "resources": {**RESOURCES, "instanceCount": 2, "properties": {}, "shmSize": "2g"},
                "inputs": {},
                "outputs": {"default": DEFAULT_OUTPUT},
                "distribution": {
                    "distributionType": "Ray",
                    **dict.fromkeys(("port", "address", "includeDashboard", "dashboardPort")),
                    **dict.fromkeys(("headNodeAdditionalArgs", "workerNodeAdditionalArgs")),
                },
                "limits": None,
                "parameters": {},
                "queueSettings": None,
            },
            "systemData": CREATED,
        },
    ),
    "PUT jobs/sweep": (
        201,
        {
            "properties": {
                **JOB,
                "jobType": "Sweep",
                "status": "Running",
                "services": {"Studio": SERVICE},
                "searchSpace": {"rate": ["uniform", [0.1, 0.5]]},
                "samplingAlgorithm": {
                    "samplingAlgorithmType": "Random",
                    "rule": "Random",
                    **dict.fromkeys(("seed", "logbase")),
                },
                "limits": {"jobLimitsType": "Sweep", "maxTotalTrials": 2, "trialTimeout": None},
                "earlyTermination": None,
                "objective": {"primaryMetric": "accuracy", "goal": "Maximize"},
                "trial": {
                    "command": str,
                    "environmentId": str,
                    "environmentVariables": {},
                    "distribution": None,
                    "resources": {**RESOURCES, "properties": None},
                },
                "inputs": {},
                "outputs": {"default": DEFAULT_OUTPUT},
                "queueSettings": None,
            },
            "systemData": CREATED,
        },
    ),
    "POST jobs/command/cancel": (202, None),
    "GET locations/eastus/mfeOperationResults/jc:.*:command": (202, {}),
    "PUT schedules/daily": (201, {"properties": {**SCHEDULE, "provisioningState": "Creating"}}),
    "GET locations/eastus/mfeOperationsStatus/s:.*": (200, OPERATION),
    "GET schedules/daily": (
        200,
        {
            "name": "daily",
            "properties": {**SCHEDULE, "provisioningState": "Succeeded"},
            "systemData": CHANGED,
        },
    ),
    "DELETE schedules/daily": (202, None),
    "GET datastores/workspaceblobstore": (
        200,
        {
            "properties": {
                "description": None,
                "tags": None,
                "properties": None,
                "isDefault": True,
                "credentials": {"credentialsType": "AccountKey"},
                "datastoreType": "AzureBlob",
                "accountName": str,
                "containerName": str,
                "endpoint": "core.windows.net",
                "protocol": "https",
                "serviceDataAccessAuthIdentity": "WorkspaceSystemAssignedIdentity",
            },
            "systemData": {**CHANGED, "createdByType": "Application", "lastModifiedByType": "Application"},
        },
    ),
    "GET computes/cpu-cluster": (
        200,
        {
            "id": str,
            "name": "cpu-cluster",
            "type": str,
            "location": "eastus",
            "tags": {},
            "properties": dict,
        },
    ),
    "GET computes/missing": (404, ""),
    "GET components/missing/versions/1": (
        404,
        error("Not found component missing (version: 1).", "NotFound", "ComponentNotFound"),
    ),
    "GET schedules/missing": (404, error("Resource Trigger missing not found", "NotFound")),
    "PUT components/changed/versions/1": (
        400,
        error(
            'Failed to update component changed since field "command" is immutable, try specifying a new version.',
            "BadArgument",
            "ArgumentInvalid",
            "UpdateComponentFailed",
        ),
    ),
    "PUT jobs/lost": (404, error(re.compile(r"key: /.*, Message: Not found component train \(version: 9\)."))),
    "GET runs/pipeline/children": (200, {"value": []}),
}


def differences(expected: Any, found: Any, place: str = "") -> Iterator[str]:
    """Where what was found is not as expected: a value, a type, a pattern, or a mapping of them with the very keys."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted(expected.keys() ^ found.keys()):
            yield f"{place}.{key} is {'missing' if key in expected else found[key]!r}"
        for key in expected.keys() & found.keys():
            yield from differences(expected[key], found[key], f"{place}.{key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from differences(one, other, f"{place}[{number}]")
    elif isinstance(expected, re.Pattern):
        if not (isinstance(found, str) and expected.fullmatch(found)):
            yield f"{place} is {found!r}"
    elif not (isinstance(found, expected) if isinstance(expected, type) else expected == found):
        yield f"{place} is {found!r}"
