"""Jobs and run history in both services: show, list and change jobs, and locate their logs and outputs."""

import uuid
from collections.abc import Callable, Mapping
from typing import Any

from allranks_client.emulation import SHARED, Job, Service, created, long_datastores, resource, select, timestamp
from allranks_client.messages import Answer, Request, user_error
from allranks_client.routing import API, MANAGEMENT

HISTORY = "/history/v1.0{workspace}"
MODEL_TYPES = {"custom_model": "CustomModel", "mlflow_model": "MLFlowModel", "triton_model": "TritonModel"}
ENDED = ("Completed", "Failed", "Canceled")
_FIRST_STATUS = {"Command": "Starting", "Pipeline": "Preparing", "Sweep": "Running"}
"""The state in the answer to a new job."""
_OUTPUT = "azureml_output:"
"""The beginning of the id of an output."""


def body(service: Service, request: Request, job: Job) -> dict[str, Any]:
    """Return a job as the management API shows it."""
    made = resource(request.scope, f"/jobs/{job.name}", None, created=job.created)
    if job.properties is None:
        del made["properties"]
        return made
    sent = {**job.properties, "outputs": dict(job.properties.get("outputs") or {})}
    if job.kind != "Pipeline":
        uri = f"azureml://datastores/workspaceartifactstore/ExperimentRun/dcid.{job.name}"
        sent["outputs"]["default"] = {"jobOutputType": "uri_folder", "uri": uri}
    nothing = dict.fromkeys(("port", "status", "errorMessage", "properties", "nodes"))
    services = {
        kind: {"jobServiceType": kind, "endpoint": endpoint, **nothing}
        for kind, endpoint in service.job_pages(job).items()
        if (kind, job.kind) != ("Tracking", "Sweep")
    }
    made["properties"] = {
        **with_defaults(sent),
        "displayName": job.display_name,
        "experimentName": _experiment(job),
        "status": job.status,
        "isArchived": job.archived,
        "tags": job.tags,
        "properties": {**(sent.get("properties") or {}), **job.run_properties},
        "services": services,
    }
    return made


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
_OUTPUT_PORT = {"description": None, "uri": None, "assetName": None, "mode": "ReadWriteMount"}


def with_defaults(sent: dict[str, Any]) -> dict[str, Any]:
    """Return the properties of a job with every key of the service, except those of its state."""
    kind = sent["jobType"]
    shown = {**_JOB, **_JOB_OF.get(kind, {}), **sent}
    if kind == "Command":
        shown["resources"] = {**_RESOURCES, "shmSize": "2g", **(sent.get("resources") or {})}
        if (sent.get("distribution") or {}).get("distributionType") == "Ray":
            shown["distribution"] = {**dict.fromkeys(_RAY), **sent["distribution"]}
    elif kind == "Sweep":
        trial = sent["trial"]
        resources = {**_RESOURCES, "properties": None, **(trial.get("resources") or {})}
        shown["trial"] = {"distribution": None, **trial, "resources": resources}
        shown["limits"] = {"trialTimeout": None, **sent["limits"]}
        if sent["samplingAlgorithm"]["samplingAlgorithmType"] == "Random":
            shown["samplingAlgorithm"] = {**_RANDOM, **sent["samplingAlgorithm"]}
        shown["objective"] = {**sent["objective"], "goal": sent["objective"]["goal"].capitalize()}
    shown["inputs"] = {
        name: {**(_INPUT if port.get("jobInputType") == "literal" else _DATA_INPUT), **port}
        for name, port in (shown["inputs"] or {}).items()
    }
    shown["outputs"] = {name: {**_OUTPUT_PORT, **port} for name, port in (shown["outputs"] or {}).items()}
    return shown


def schedule_properties(sent: dict[str, Any]) -> dict[str, Any]:
    """Return the properties of the job of a schedule, which never runs itself."""
    return {**with_defaults(sent), "status": "NotStarted", "services": None}


@SHARED.route(MANAGEMENT, "GET", "{workspace}/jobs")
def list_jobs(service: Service, request: Request) -> Answer:
    """Return the jobs, the newest first, without the steps of pipelines."""
    return service.page(request, select(request, [body(service, request, job) for job in service.submitted_jobs()]))


@SHARED.route(MANAGEMENT, "GET", "{workspace}/jobs/{name}")
def get_job(service: Service, request: Request, name: str) -> Answer:
    return Answer.of(body(service, request, service.job(name)))


@SHARED.route(MANAGEMENT, "PUT", "{workspace}/jobs/{name}")
def put_job(service: Service, request: Request, name: str) -> Answer:
    """Start a job, or change the description of an existing one."""
    properties = request.json.get("properties") or {}
    if not service.has_job(name):
        made = body(service, request, service.start_job(name, properties))
        made["properties"]["status"] = _FIRST_STATUS.get(properties["jobType"], "Starting")
        return created(request, made)
    job = service.job(name)
    if job.properties is None or job.kind != properties.get("jobType"):
        raise user_error(f"A job with the name {name} exists already.")
    _change(job, properties, properties.get("isArchived"))
    job.tags = dict(properties.get("tags") or {})
    service.save_job(job)
    return Answer.of(body(service, request, job))


def _change(job: Job, change: Mapping[str, Any], archived: bool | None) -> None:
    job.display_name = change.get("displayName") or job.display_name
    if job.properties is not None and change.get("description"):
        job.properties["description"] = change["description"]
    if archived is not None:
        job.archived = bool(archived)


def _experiment(job: Job) -> str:
    return str((job.properties or {}).get("experimentName") or "Default")


def _run(service: Service, job: Job) -> dict[str, Any]:
    """Return a job as run history shows it."""
    experiment = _experiment(service.job(job.root) if job.root else job)
    is_pipeline = job.kind == "Pipeline"
    return {
        "runId": job.name,
        "rootRunId": job.root or job.name,
        "parentRunId": job.parent or None,
        "experimentId": str(uuid.uuid5(uuid.NAMESPACE_OID, experiment)),
        "displayName": job.display_name,
        "createdUtc": timestamp(job.created),
        **_state(job),
        "hidden": job.archived,
        "runType": "azureml.StepRun" if job.parent else "azureml.PipelineRun" if is_pipeline else "command",
        "outputs": {
            name: {"assetId": f"{_OUTPUT}{job.name}/{name}", "type": _output_type(kind)}
            for name, (kind, _, _) in job.outputs.items()
        },
    }


def _state(job: Job) -> dict[str, Any]:
    failure = {"error": {"code": "UserError", "message": job.error, "details": []}, "time": _time(job.ended)}
    return {
        "status": job.status,
        "startTimeUtc": _time(job.started),
        "endTimeUtc": _time(job.ended),
        "tags": job.tags,
        "properties": {**((job.properties or {}).get("properties") or {}), **job.run_properties},
        "error": failure if job.error else None,
    }


def _time(seconds: float | None) -> str | None:
    return None if seconds is None else timestamp(seconds)


def _output_type(kind: str) -> str:
    return MODEL_TYPES.get(kind, kind if kind in ("uri_folder", "mltable") else "uri_file")


@SHARED.route(API, "GET", HISTORY + "/runs/{name}")
def get_run(service: Service, request: Request, name: str) -> Answer:
    return Answer.of(_run(service, service.job(name)))


@SHARED.route(API, "PATCH", HISTORY + "/runs/{name}", HISTORY + "/experiments/{experiment}/runs/{name}")
def change_run(service: Service, request: Request, name: str, experiment: str = "") -> Answer:
    """Change the description of a job, or archive it."""
    job, change = service.job(name), request.json
    if job.root:
        raise user_error(f"Run {name} is a step of a pipeline and cannot be changed.")
    job.tags = {**job.tags, **(change.get("tags") or {})}
    job.run_properties = {**job.run_properties, **(change.get("properties") or {})}
    _change(job, change, change.get("hidden"))
    service.save_job(job)
    return Answer.of(_run(service, job))


@SHARED.route(API, "GET", HISTORY + "/runs/{name}/children")
def get_children(service: Service, request: Request, name: str) -> Answer:
    """Return a page of the steps. The link to the next page is a token, which the next request contains."""
    children = service.job(name).children
    start = int(request.query.get("$continuationtoken", 0))
    end = start + service.page_size
    found = [_run(service, service.job(child)) for child in children[start:end]]
    return Answer.of({"value": found, **({"continuationToken": str(end)} if end < len(children) else {})})


def details(service: Service, job: Job) -> dict[str, Any]:
    """Return the state of a job and the addresses of its logs."""
    times = {"createdTimeUtc": timestamp(job.created), "warnings": []}
    return {"runId": job.name, "parentRunId": job.parent or None, **_state(job), **times, "logFiles": service.logs(job)}


@SHARED.route(API, "POST", HISTORY + "/rundata")
def get_run_data(service: Service, request: Request) -> Answer:
    run = _run(service, service.job(request.json["runId"]))
    return Answer.of({"runMetadata": run, "runDefinition": None, "jobSpecification": None})


@SHARED.route(API, "GET", HISTORY + "/runs/{name}/serviceinstances/{node}")
def get_services(service: Service, request: Request, name: str, node: str) -> Answer:
    service.job(name)
    return Answer.of({"instances": {}})


def _resolving(key: str) -> Callable[..., Answer]:
    def resolve(service: Service, request: Request) -> Answer:
        """Return the locations of outputs, by the ids in their runs."""
        values = {}
        for identity in request.json.get("values") or []:
            job, _, output = identity.removeprefix(_OUTPUT).partition("/")
            kind, datastore, path = service.job(job).outputs[output]
            uri = f"{long_datastores(request.scope)}{datastore}/paths/{path}"
            values[identity] = {key: uri, "type": _output_type(kind)}
        return Answer.of({"values": values})

    return resolve


for _path, _key in (("/data/v1.0{workspace}/dataversion", "uri"), ("/modelregistry/v1.0{workspace}/models", "path")):
    SHARED.route(API, "POST", f"{_path}/batchGetResolvedUris")(_resolving(_key))
