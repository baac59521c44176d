"""Schedules, batch endpoints and their deployments, as the client has sent them, in ``assets`` of the workspace folder.

The deployments are pipeline components: their invocation runs the component as a pipeline job.
"""

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

from allranks.api import jobs
from allranks.errors import InputError, Problem
from allranks.plan.secrets import shown as without_secrets
from allranks_client import run_history
from allranks_client.emulation import resource
from allranks_client.local_service import LocalService, route
from allranks_client.messages import Answer, Request, not_found, user_error
from allranks_client.routing import API, MANAGEMENT
from allranks_client.storage import write_json

SCHEDULES, ENDPOINTS, DEPLOYMENTS = "/schedules", "/batchEndpoints", "/batchEndpoints/{endpoint}/deployments"
_KINDS = tuple(f"{{workspace}}{path}" for path in (SCHEDULES, ENDPOINTS, DEPLOYMENTS))
_ONE = tuple(f"{kind}/{{name}}" for kind in _KINDS)
_PORT_TYPES = {"UriFile": "uri_file", "UriFolder": "uri_folder", "MLTable": "mltable"}
_PORT_TYPES |= {name: kind for kind, name in run_history.MODEL_TYPES.items()}
_SETTINGS = ("continue_on_step_failure", "force_rerun")
"""The settings of a deployment that are supported on this machine."""
_VIEWS = {"EnabledOnly": (True,), "DisabledOnly": (False,)}


def _file(service: LocalService, path: str) -> Path:
    return service.workspace.root / "assets" / f"{path.strip('/')}.json"


def find(service: LocalService, path: str) -> dict[str, Any]:
    """Return the body that is stored at a path. Raise Refusal if there is none."""
    try:
        return dict(json.loads(_file(service, path).read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise not_found(path.strip("/")) from None


def save(service: LocalService, request: Request, properties: dict[str, Any], **more: Any) -> Answer:
    """Store the body that the client has sent, with the keys that the service adds. more: further keys"""
    body = resource(request.scope, request.below, {**properties, "provisioningState": "Succeeded"}, **more)
    file = _file(service, request.below)
    if not (is_new := not file.exists()):
        body["systemData"]["createdAt"] = find(service, request.below)["systemData"]["createdAt"]
    write_json(file, without_secrets(body))
    return Answer.of(body, 201 if is_new else 200)


@route(MANAGEMENT, "GET", *_KINDS)
def list_stored(service: LocalService, request: Request, **_: str) -> Answer:
    states = _VIEWS.get(request.query.get("listViewType", "EnabledOnly"), (True, False))
    files = sorted(_file(service, request.below).with_suffix("").glob("*.json"))
    found = [find(service, f"{request.below}/{file.stem}") for file in files]
    return Answer.of({"value": [body for body in found if body["properties"].get("isEnabled", states[0]) in states]})


@route(MANAGEMENT, "GET", *_ONE)
def get_stored(service: LocalService, request: Request, **_: str) -> Answer:
    return Answer.of(find(service, request.below))


@route(MANAGEMENT, "DELETE", *_ONE)
def delete_stored(service: LocalService, request: Request, name: str, **_: str) -> Answer:
    """Delete one, and the deployments of an endpoint. As on Azure ML, an enabled schedule is not deleted."""
    if find(service, request.below)["properties"].get("isEnabled"):
        raise user_error(f"Schedule {name} is enabled. Disable it before deleting it.")
    _file(service, request.below).unlink()
    shutil.rmtree(_file(service, request.below).with_suffix(""), ignore_errors=True)
    return Answer()


@route(MANAGEMENT, "PUT", "{workspace}" + ENDPOINTS + "/{endpoint}")
def put_endpoint(service: LocalService, request: Request, endpoint: str) -> Answer:
    sent = request.json["properties"]
    sent["scoringUri"] = f"https://{API}{request.scope}{request.below}/jobs"
    sent["defaults"] = sent.get("defaults") or {"deploymentName": None}
    return save(service, request, sent, location=request.json["location"], tags=request.json.get("tags"))


@route(MANAGEMENT, "PUT", "{workspace}" + DEPLOYMENTS + "/{name}")
def put_deployment(service: LocalService, request: Request, endpoint: str, name: str) -> Answer:
    """Create or change a deployment. Raise InputError if it is not a pipeline component."""
    find(service, f"{ENDPOINTS}/{endpoint}")
    sent = request.json["properties"]
    if "componentId" not in (sent.get("deploymentConfiguration") or {}):
        found, expected = "a model with a scoring script", "a PipelineComponentBatchDeployment"
        fix = "deploy a pipeline component, or submit the scoring as a pipeline with a parallel step"
        raise InputError(Problem(f"LocalClient, batch_deployments, {name}", found, expected, fix))
    return save(service, request, sent, location=request.json["location"], tags=request.json.get("tags"))


@route(MANAGEMENT, "POST", "{workspace}" + ENDPOINTS + "/{endpoint}/jobs")
def invoke(service: LocalService, request: Request, endpoint: str) -> Answer:
    """Start the pipeline of a deployment. Raise InputError if it cannot run here."""
    from azure.ai.ml import Input, Output
    from azure.ai.ml.entities import PipelineJob

    path, asked = f"{ENDPOINTS}/{endpoint}", request.json["properties"]

    def ports(key: str, kind: str, port: Any) -> dict[str, Any]:
        return {
            name: sent.get("value")
            if sent[kind] == "Literal"
            else port(type=_PORT_TYPES[sent[kind]], path=sent.get("uri"), mode=sent.get("mode"))
            for name, sent in (asked.get(key) or {}).items()
        }

    default = find(service, path)["properties"]["defaults"]["deploymentName"]
    if not (deployment := request.headers.get("azureml-model-deployment", default)):
        raise user_error(f"Batch endpoint {endpoint} has no default deployment.")
    configuration = find(service, f"{path}/deployments/{deployment}")["properties"]["deploymentConfiguration"]
    job = PipelineJob(
        component=configuration["componentId"]["assetId"],
        inputs=ports("inputData", "jobInputType", Input),
        outputs=ports("outputData", "jobOutputType", Output),
    )
    for name in _SETTINGS:
        setattr(job.settings, name, (configuration.get("settings") or {}).get(name))
    name = asked.get("name") or f"batchjob-{uuid.uuid4()}"
    started = service.start_job(name, None, jobs.read(job, None, service.workspace))
    return Answer.of(run_history.body(service, request, started), 201)
