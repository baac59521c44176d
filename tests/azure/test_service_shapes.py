"""The fake answers in the forms of the real service, as azure-sdk-for-python's recordings show them, and the SDK and we
take them as they are. Written by hand: docs/azure.md says what was compared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from fake.fixtures import fresh
from fake.messages import Answer, Request
from fake.server import Server

from allranks_command import write

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
    "PUT jobs/sweep": (
        201,
        {
            "properties": {
                **JOB,
                "jobType": "Sweep",
                "status": "Running",
                "services": {"Studio": SERVICE},
                "searchSpace": {"rate": ["uniform", [0.1, 0.5]]},
                "samplingAlgorithm": dict,
                "limits": dict,
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


TRAIN = {
    "type": "command",
    "name": "train",
    "version": "1",
    "description": "trains",
    "$schema": "https://azuremlschemas.azureedge.net/latest/commandComponent.schema.json",
    "inputs": {
        "rate": {"type": "number", "optional": True, "default": 0.5},
        "data": {"type": "uri_folder"},
    },
    "outputs": {"again": {"type": "boolean"}},
    "command": "train ${{inputs.data}} $[[${{inputs.rate}}]]",
    "environment": "azureml:torch:1",
    "resources": {"instance_count": 2, "instance_type": "Standard_D4s_v5"},
    "distribution": {"type": "pytorch", "process_count_per_instance": 4},
}
ECHO = {"type": "command", "command": "echo", "environment": "azureml:torch:1"}
INNER = {"type": "pipeline", "name": "inner", "version": "1", "jobs": {"b": {"type": "command", "component": ECHO}}}


@dataclass
class Recorded:
    """answers: of requests, by method and path below the workspace or the provider; the first of each"""

    answers: dict[str, Answer]
    client: Any

    def find(self, request: str) -> Answer:
        return next(answer for asked, answer in self.answers.items() if re.fullmatch(request, asked))


@pytest.fixture(scope="module")
def recorded(azure_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    """What the fake has answered to a client that does a bit of everything."""
    from azure.ai.ml import load_component, load_job
    from azure.ai.ml.entities import CronTrigger, Data, Environment, JobSchedule

    folder = tmp_path_factory.mktemp("shapes")
    answers: dict[str, Answer] = {}
    with pytest.MonkeyPatch.context() as patch, fresh(azure_server, folder) as azure:
        patch.setenv("AZURE_ML_DISABLE_ON_DISK_CACHE", "true")
        azure.executes, azure.operation_looks = False, 0
        answer = azure.answer

        def keep(request: Request) -> Answer:
            try:
                given = answer(request)
            except Exception as refusal:
                given = refusal.answer(request.host)  # type: ignore[attr-defined]
                answers.setdefault(_name(request), given)
                raise
            answers.setdefault(_name(request), given)
            if "mfeOperationResults" in request.path:  # the second look sees the end
                azure.jobs["command"].move("Canceled")
            return given

        azure.answer = keep  # type: ignore[method-assign]
        client = azure.client(show_progress=False)

        def component(**changes: Any) -> Any:
            return load_component(write(folder, "c.yml", yaml.safe_dump({**TRAIN, **changes})))

        def job(**content: Any) -> Any:
            return load_job(write(folder, "j.yml", yaml.safe_dump({"compute": "cpu-cluster", **content})))

        conda = {"name": "c", "channels": ["conda-forge"]}
        client.environments.create_or_update(
            Environment(name="torch", version="1", image="python:3.12", conda_file=conda)
        )
        client.components.create_or_update(component())
        list(client.components.list())
        client.data.create_or_update(Data(name="words", version="1", path=write(folder, "w", "a"), type="uri_file"))
        write(folder, "inner.yml", yaml.safe_dump({**INNER, "jobs": {"b": ECHO}}))
        steps = {"a": {**ECHO, "inputs": {"rate": "${{parent.inputs.rate}}"}, "command": "echo ${{inputs.rate}}"}}
        steps["nested"] = {"type": "pipeline", "component": "./inner.yml"}
        client.jobs.create_or_update(job(type="pipeline", name="pipeline", inputs={"rate": 3}, jobs=steps))
        list(client.jobs.list(parent_job_name="pipeline"))
        client.jobs.create_or_update(job(name="command", **ECHO))
        searched = {"rate": {"type": "uniform", "min_value": 0.1, "max_value": 0.5}}
        objective = {"goal": "maximize", "primary_metric": "accuracy"}
        trial = {"command": "echo ${{search_space.rate}}", "environment": "azureml:torch:1"}
        limits: dict[str, Any] = {"limits": {"max_total_trials": 2}, "sampling_algorithm": "random"}
        client.jobs.create_or_update(
            job(type="sweep", name="sweep", trial=trial, search_space=searched, objective=objective, **limits)
        )
        patch.setattr(azure.execution, "cancel", lambda job: None)
        client.jobs.begin_cancel("command").result()
        daily = JobSchedule(name="daily", trigger=CronTrigger(expression="0 3 * * *"), create_job=job(**ECHO))
        client.schedules.begin_create_or_update(daily).result()
        client.schedules.begin_disable("daily").result()
        client.schedules.begin_delete("daily").result()
        client.compute.get("cpu-cluster")
        lost = {"a": {"type": "command", "component": "azureml:train:9", "inputs": {"data": "${{parent.inputs.d}}"}}}
        refused: list[Callable[[], Any]] = [
            lambda: client.compute.get("missing"),
            lambda: client.components.get("missing", "1"),
            lambda: client.schedules.get("missing"),
            lambda: client.components.create_or_update(component(name="changed", command="other")),
            lambda: client.jobs.create_or_update(
                job(
                    type="pipeline",
                    name="lost",
                    jobs=lost,
                    inputs={"d": {"type": "uri_folder", "path": "azureml://datastores/workspaceblobstore/paths/a"}},
                )
            ),
        ]
        client.components.create_or_update(component(name="changed"))
        answers.pop("PUT components/changed/versions/1")
        for call in refused:
            with pytest.raises((HttpResponseError, ResourceNotFoundError)):
                call()
        yield Recorded(answers, client)


def _name(request: Request) -> str:
    path = re.sub(r".*/workspaces/[^/]+/|.*/Microsoft.MachineLearningServices/", "", request.path)
    return f"{request.method} {path}"


@pytest.mark.parametrize("request_name", ANSWERS)
def test_an_answer(request_name: str, recorded: Recorded) -> None:
    answer, (status, expected) = recorded.find(request_name), ANSWERS[request_name]
    assert answer.status == status
    assert isinstance(answer.body, bytes)
    found = json.loads(answer.body) if answer.body else ""
    if isinstance(expected, dict) and "id" not in expected and isinstance(found, dict) and "id" in found:
        found = {key: found[key] for key in found if key not in ("id", "name", "type")}
    assert list(differences(expected, found)) == []


def test_where_to_look(recorded: Recorded) -> None:
    """201 and 202 tell a place, and none tells how long to wait."""
    for request, answer in recorded.answers.items():
        if answer.status in (201, 202) and "blob" not in request and not request.endswith(("/words", "w")):
            assert "Retry-After" not in answer.headers
    assert (
        recorded.find("PUT jobs/command").headers["Location"].endswith("/jobs/command?api-version=2025-01-01-preview")
    )
    place = recorded.find("POST jobs/command/cancel").headers["Location"]
    assert re.search(r"/locations/eastus/mfeOperationResults/jc:[^/]+:command\?api-version=", place)
    deleted = recorded.find("DELETE schedules/daily").headers
    assert "mfeOperationResults" in deleted["Location"]
    assert "mfeOperationsStatus" in deleted["Azure-AsyncOperation"]


def test_an_anonymous_component_has_another_id(recorded: Recorded) -> None:
    made = [
        (request, json.loads(answer.body))  # type: ignore[arg-type]
        for request, answer in recorded.answers.items()
        if request.startswith("PUT components/azureml_anonymous/")
    ]
    assert made
    for request, body in made:
        asked = request.rpartition("/")[2]
        assert asked != body["name"]
        assert GUID.fullmatch(body["name"])
        assert body["id"].endswith(f"/versions/{body['name']}")
    nested = [body["properties"]["componentSpec"] for _, body in made]
    assert [spec.keys() for spec in nested if spec["type"] == "pipeline"] == [
        {"name", "version", "type", "is_deterministic"}
    ]
