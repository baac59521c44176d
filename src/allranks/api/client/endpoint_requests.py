"""Batch endpoints whose deployments are pipeline components: to invoke one runs the component as a pipeline job.

What the client has sent of endpoints and deployments is in ``assets/batchEndpoints`` of the workspace folder.
"""

from __future__ import annotations

import io
import shutil
import uuid
from pathlib import Path
from typing import Any

import yaml

from allranks.api import jobs
from allranks.api.client import asset_requests, job_requests
from allranks.api.client.service import (
    Answer,
    LocalService,
    Refusal,
    Request,
    read_json,
    resource,
    route,
    write_json,
)
from allranks.errors import InputError, Problem

_ENDPOINT = "/batchEndpoints/{endpoint}"
_DEPLOYMENT = _ENDPOINT + "/deployments/{deployment}"
_TYPES = {"uri_file": "UriFile", "uri_folder": "UriFolder", "mltable": "MLTable", **job_requests.MODEL_TYPES}
_SETTINGS = ("continue_on_step_failure", "force_rerun")
"""The settings of a deployment that change what runs here."""
_YAML_TYPES = {name: kind for kind, name in _TYPES.items()}


def _file(service: LocalService, endpoint: str, deployment: str = "") -> Path:
    folder = service.workspace.root / "assets/batchEndpoints" / endpoint
    return folder / f"deployments/{deployment}.json" if deployment else folder / "endpoint.json"


def _find(service: LocalService, endpoint: str, deployment: str = "") -> dict[str, Any]:
    return read_json(_file(service, endpoint, deployment), f"Batch endpoint {' '.join((endpoint, deployment)).strip()}")


@route("GET", "/batchEndpoints", _ENDPOINT + "/deployments")
def list_stored(service: LocalService, request: Request, endpoint: str = "") -> Answer:  # noqa: ARG001
    """Return the endpoints, or the deployments of one."""
    pattern = f"{endpoint}/deployments/*.json" if endpoint else "*/endpoint.json"
    found = sorted(_file(service, "").parent.glob(pattern))
    return Answer({"value": [read_json(file, file.stem) for file in found]})


@route("GET", _ENDPOINT, _DEPLOYMENT)
def get_stored(service: LocalService, request: Request, **names: str) -> Answer:  # noqa: ARG001
    return Answer(_find(service, **names))


@route("PUT", _ENDPOINT, _DEPLOYMENT)
def put(service: LocalService, request: Request, endpoint: str, deployment: str = "") -> Answer:
    """Create or change an endpoint or a deployment. Raise InputError for a deployment that is not a pipeline."""
    properties = {**request.body["properties"], "provisioningState": "Succeeded"}
    if not deployment:
        properties["defaults"] = properties.get("defaults") or {"deploymentName": None}
        properties["scoringUri"] = f"https://{service.account}.api.azureml.ms{request.scope}{request.path}/jobs"
    elif "componentId" not in ((_find(service, endpoint) and properties.get("deploymentConfiguration")) or {}):
        found, expected = "a model with a scoring script", "a PipelineComponentBatchDeployment"
        fix = "deploy a pipeline component, or submit the scoring as a pipeline with a parallel step"
        raise InputError(Problem(f"LocalClient, batch_deployments, {deployment}", found, expected, fix))
    more = {key: request.body.get(key) for key in ("location", "tags")}
    file = _file(service, endpoint, deployment)
    status = 200 if file.exists() else 201
    write_json(file, resource(request, request.path, properties, **more))
    return Answer(read_json(file, endpoint), status)


@route("DELETE", _ENDPOINT, _DEPLOYMENT)
def delete(service: LocalService, request: Request, endpoint: str, deployment: str = "") -> Answer:  # noqa: ARG001
    """Delete a deployment, or an endpoint with its deployments."""
    _find(service, endpoint, deployment)
    if deployment:
        _file(service, endpoint, deployment).unlink()
    else:
        shutil.rmtree(_file(service, endpoint).parent)
    return Answer(None)


@route("POST", _ENDPOINT + "/jobs")
def invoke(service: LocalService, request: Request, endpoint: str) -> Answer:
    """Start the pipeline of a deployment. Raise InputError if it cannot run here."""
    from azure.ai.ml import load_job

    default = _find(service, endpoint)["properties"]["defaults"]["deploymentName"]
    if not (deployment := request.headers.get("azureml-model-deployment", default)):
        raise Refusal(400, f"Batch endpoint {endpoint} has no default deployment.")
    configuration = _find(service, endpoint, deployment)["properties"]["deploymentConfiguration"]
    asked, settings = request.body["properties"], configuration.get("settings") or {}
    component = asset_requests.component_reference(configuration["componentId"]["assetId"])
    spec: dict[str, Any] = {"type": "pipeline", "component": component}
    spec["settings"] = {key: settings[key] for key in _SETTINGS if key in settings}
    spec["inputs"] = {name: _port(port) for name, port in (asked.get("inputData") or {}).items()}
    spec["outputs"] = {name: _port(port) for name, port in (asked.get("outputData") or {}).items()}
    plan = jobs.read(load_job(io.StringIO(yaml.safe_dump(spec))), None, service.workspace)
    name = asked.get("name") or f"batchjob-{uuid.uuid4()}"
    record = job_requests.start(service, name, None, plan)
    return Answer(job_requests.body(service, request, record), 201)


def _port(port: dict[str, Any]) -> Any:
    """Return an input or an output of an invocation as a job's YAML file has it."""
    kind = port.get("jobInputType") or port["jobOutputType"]
    data = {"type": _YAML_TYPES.get(kind), "path": port.get("uri"), "mode": port.get("mode")}
    return port.get("value") if kind == "Literal" else {key: value for key, value in data.items() if value}
