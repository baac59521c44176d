"""Run history: how runs go, their logs, steps and outputs."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from allranks_client.emulation import timestamp
from allranks_client.messages import Answer, Request, not_found
from fake.jobs import Job, named
from fake.names import API, BLOBS, GROUP, SUBSCRIPTION, WORKSPACE
from fake.routing import route

if TYPE_CHECKING:
    from fake.service import FakeAzure

_HISTORY = "/history/v1.0{workspace}"
ARTIFACTS = "azureml"
"""The container of the artifact store."""

_MODEL_TYPES = {"custom_model": "CustomModel", "mlflow_model": "MLFlowModel", "triton_model": "TritonModel"}


def artifacts(job: str) -> str:
    """Where a run's artifacts begin in the artifact store."""
    return f"ExperimentRun/dcid.{job}"


def _run(azure: FakeAzure, job: Job) -> dict[str, Any]:
    root = job.parent or job.name
    step = {"azureml.nodeid": _uuid(job.name)[:8], "azureml.pipeline": root} if job.parent else {}
    return {
        **_NOTHING,
        "runId": job.name,
        "runUuid": _uuid(job.name),
        "rootRunId": root,
        "rootRunUuid": _uuid(root),
        "parentRunId": job.parent or None,
        "experimentId": _uuid(named(azure, root).experiment),
        "name": job.run_properties.get("azureml.moduleName"),
        "displayName": job.display_name,
        "status": job.status,
        "createdUtc": timestamp(job.created),
        "startTimeUtc": timestamp(job.started) if job.started else None,
        "endTimeUtc": timestamp(job.ended) if job.ended else None,
        "tags": {**step, **job.tags},
        "properties": {**step, **job.run_properties},
        "hidden": job.archived,
        "runType": "azureml.StepRun" if job.parent else "azureml.PipelineRun" if job.kind == "Pipeline" else "command",
        "outputs": {
            name: {"assetId": _asset(job, name), "type": _MODEL_TYPES.get(kind, kind)}
            for name, (kind, _, _) in job.outputs.items()
        }
        or None,
        "error": _error(job),
    }


def _uuid(name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, name))


_NOTHING = dict.fromkeys(("description", "warnings", "inputs", "runDefinition", "jobSpecification"))
"""Of what most runs have nothing."""


def _error(job: Job) -> dict[str, Any] | None:
    if not job.error:
        return None
    return {"error": {"code": "UserError", "message": job.error, "details": []}, "time": timestamp(job.ended)}


def _asset(job: Job, output: str) -> str:
    return f"azureml://locations/eastus/workspaces/{WORKSPACE}/data/azureml_{job.name}_output_{output}/versions/1"


@route(API, "GET", _HISTORY + "/runs/{name}")
def get_run(azure: FakeAzure, request: Request, name: str) -> Answer:
    return Answer.of(_run(azure, named(azure, name)))


@route(API, "PATCH", _HISTORY + "/experiments/{experiment}/runs/{name}", _HISTORY + "/runs/{name}")
def change_run(azure: FakeAzure, request: Request, name: str, experiment: str = "") -> Answer:
    """What is said about a run, and whether it is archived."""
    job, change = named(azure, name), request.json
    job.tags |= change.get("tags") or {}
    job.run_properties |= change.get("properties") or {}
    job.display_name = change.get("displayName") or job.display_name
    if change.get("hidden") is not None:
        job.archived = bool(change["hidden"])
    return Answer.of(_run(azure, job))


@route(API, "GET", _HISTORY + "/runs/{name}/children")
def get_children(azure: FakeAzure, request: Request, name: str) -> Answer:
    """A page of the steps. The link to the next is a token, which the request has to return; the last has none."""
    children = named(azure, name).children
    start = int(request.query.get("$continuationtoken", 0))
    end = start + azure.page_size
    found = [_run(azure, named(azure, child)) for child in children[start:end]]
    return Answer.of({"value": found, **({"continuationToken": str(end)} if end < len(children) else {})})


@route(API, "GET", _HISTORY + "/runs/{name}/details")
def get_details(azure: FakeAzure, request: Request, name: str) -> Answer:
    """How the run is, and where its logs can be read. Run history gets to know a job some time after its request."""
    job = named(azure, name)
    if azure.history_lag > 0 and not job.parent:
        azure.history_lag -= 1
        raise not_found(f"Run {name}")
    place = f"https://{BLOBS}/{ARTIFACTS}/{artifacts(job.name)}"
    logs = {log: f"{place}/{log}?{azure.blobs.sas()}" for log in sorted(job.logs)}
    return Answer.of(
        {
            "runId": job.name,
            "status": job.status,
            "parentRunId": job.parent or None,
            "createdTimeUtc": timestamp(job.created),
            "startTimeUtc": timestamp(job.started) if job.started else None,
            "endTimeUtc": timestamp(job.ended) if job.ended else None,
            "error": _error(job),
            "warnings": [],
            "tags": job.tags,
            "properties": job.run_properties,
            "logFiles": logs,
        }
    )


@route(API, "GET", _HISTORY + "/runs/{name}/serviceinstances/{node}")
def get_services(azure: FakeAzure, request: Request, name: str, node: str) -> Answer:
    named(azure, name)
    return Answer.of({"instances": {}})


@route(API, "POST", _HISTORY + "/rundata")
def get_run_data(azure: FakeAzure, request: Request) -> Answer:
    job = named(azure, request.json["runId"])
    return Answer.of({"runMetadata": _run(azure, job), "runDefinition": None, "jobSpecification": None})


@route(API, "POST", "/data/v1.0{workspace}/dataversion/batchGetResolvedUris")
def resolve_data(azure: FakeAzure, request: Request) -> Answer:
    """Where the outputs of runs are, by the ids that their runs have for them."""
    return Answer.of({"values": {found: {"uri": uri, "type": kind} for found, kind, uri in _resolved(azure, request)}})


@route(API, "POST", "/modelregistry/v1.0{workspace}/models/batchGetResolvedUris")
def resolve_models(azure: FakeAzure, request: Request) -> Answer:
    """The same for models."""
    return Answer.of({"values": {found: {"path": uri, "type": kind} for found, kind, uri in _resolved(azure, request)}})


def _resolved(azure: FakeAzure, request: Request) -> Iterator[tuple[str, str, str]]:
    by_id = {_asset(job, name): place for job in azure.jobs.values() for name, place in job.outputs.items()}
    for identity in request.json.get("values") or []:
        if identity in by_id:
            kind, datastore, path = by_id[identity]
            workspace = f"subscriptions/{SUBSCRIPTION}/resourcegroups/{GROUP}/workspaces/{WORKSPACE}"
            yield identity, kind, f"azureml://{workspace}/datastores/{datastore}/paths/{path}"
