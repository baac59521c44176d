"""Batch endpoints whose deployments are pipeline components: to invoke one runs the component as a pipeline job."""

from __future__ import annotations

import uuid
from typing import Any

from allranks.api import jobs
from allranks.api.client import job_requests
from allranks.api.client.service import Answer, LocalService, Refusal, Request, route
from allranks.api.client.stored_requests import DEPLOYMENTS, ENDPOINTS, find, save
from allranks.errors import InputError, Problem

_KINDS = {"UriFile": "uri_file", "UriFolder": "uri_folder", "MLTable": "mltable"}
_KINDS |= {name: kind for kind, name in job_requests.MODEL_TYPES.items()}
_SETTINGS = ("continue_on_step_failure", "force_rerun")
"""The settings of a deployment that have a meaning on this machine."""


@route("PUT", ENDPOINTS + "/{endpoint}")
def put_endpoint(service: LocalService, request: Request, endpoint: str) -> Answer:  # noqa: ARG001
    sent = request.body["properties"]
    sent["scoringUri"] = f"https://{service.account}.api.azureml.ms{request.scope}{request.path}/jobs"
    sent["defaults"] = sent.get("defaults") or {"deploymentName": None}
    return save(service, request, sent, location=request.body["location"], tags=request.body.get("tags"))


@route("PUT", DEPLOYMENTS + "/{name}")
def put_deployment(service: LocalService, request: Request, endpoint: str, name: str) -> Answer:
    """Create or change a deployment. Raise InputError if it is not a pipeline component."""
    find(service, f"{ENDPOINTS}/{endpoint}")
    sent = request.body["properties"]
    if "componentId" not in (sent.get("deploymentConfiguration") or {}):
        found, expected = "a model with a scoring script", "a PipelineComponentBatchDeployment"
        fix = "deploy a pipeline component, or submit the scoring as a pipeline with a parallel step"
        raise InputError(Problem(f"LocalClient, batch_deployments, {name}", found, expected, fix))
    return save(service, request, sent, location=request.body["location"], tags=request.body.get("tags"))


@route("POST", ENDPOINTS + "/{endpoint}/jobs")
def invoke(service: LocalService, request: Request, endpoint: str) -> Answer:
    """Start the pipeline of a deployment. Raise InputError if it cannot run here."""
    from azure.ai.ml import Input, Output
    from azure.ai.ml.entities import PipelineJob

    path, asked = f"{ENDPOINTS}/{endpoint}", request.body["properties"]

    def ports(key: str, kind: str, port: Any) -> dict[str, Any]:
        return {
            name: sent.get("value")
            if sent[kind] == "Literal"
            else port(type=_KINDS[sent[kind]], path=sent.get("uri"), mode=sent.get("mode"))
            for name, sent in (asked.get(key) or {}).items()
        }

    default = find(service, path)["properties"]["defaults"]["deploymentName"]
    if not (deployment := request.headers.get("azureml-model-deployment", default)):
        raise Refusal(400, f"Batch endpoint {endpoint} has no default deployment.")
    configuration = find(service, f"{path}/deployments/{deployment}")["properties"]["deploymentConfiguration"]
    job = PipelineJob(
        component=configuration["componentId"]["assetId"],
        inputs=ports("inputData", "jobInputType", Input),
        outputs=ports("outputData", "jobOutputType", Output),
    )
    for name in _SETTINGS:
        setattr(job.settings, name, (configuration.get("settings") or {}).get(name))
    name = asked.get("name") or f"batchjob-{uuid.uuid4()}"
    record = job_requests.start(service, name, None, jobs.read(job, None, service.workspace))
    return Answer(job_requests.body(service, request, record), 201)
