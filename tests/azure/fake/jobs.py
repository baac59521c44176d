"""Jobs: submitted, shown, listed, cancelled."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from allranks_client.emulation import created, resource, viewed
from allranks_client.messages import Answer, Refusal, Request, not_found, user_error
from fake import answers, operations
from fake.names import API, GROUP, MANAGEMENT, STUDIO, SUBSCRIPTION, WORKSPACE, WORKSPACE_PATH
from fake.references import check_reference, parse
from fake.routing import route

if TYPE_CHECKING:
    from fake.service import FakeAzure

ENDED = ("Completed", "Failed", "Canceled")


@dataclass
class Job:
    """A job, or a step of a pipeline, which is a job of its own.

    properties: the REST body's; None for a step, of which the management API tells nothing
    parent:     the pipeline's name, for a step
    logs:       names of logs, which lie in the artifact store
    outputs:    name -> (type, datastore, path)
    """

    name: str
    properties: dict[str, Any] | None
    status: str = "Queued"
    display_name: str = ""
    parent: str = ""
    children: list[str] = field(default_factory=list)
    created: float = field(default_factory=time.time)
    started: float | None = None
    ended: float | None = None
    error: str = ""
    archived: bool = False
    logs: list[str] = field(default_factory=list)
    outputs: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    run_properties: dict[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return str((self.properties or {}).get("jobType", "Command"))

    @property
    def experiment(self) -> str:
        return str((self.properties or {}).get("experimentName") or "Default")

    def url(self) -> str:
        """Its page in the studio."""
        workspace = f"/subscriptions/{SUBSCRIPTION}/resourcegroups/{GROUP}/workspaces/{WORKSPACE}"
        return f"{STUDIO}/runs/{self.name}?wsid={workspace}"

    def move(self, status: str) -> None:
        """Into another state, with the time of it."""
        if self.status in ENDED:
            return
        if status == "Running" and self.started is None:
            self.started = time.time()
        if status in ENDED:
            self.ended = time.time()
        self.status = status


def body(job: Job) -> dict[str, Any]:
    """A job as the management API shows it: of a pipeline's steps nothing but the name."""
    body = resource(WORKSPACE_PATH, f"/jobs/{job.name}", None, created=job.created)
    if job.properties is None:
        del body["properties"]
        return body
    sent = {**job.properties, "outputs": dict(job.properties.get("outputs") or {})}
    services = {"Studio": _service("Studio", job.url())}
    if job.kind != "Sweep":
        services["Tracking"] = _service("Tracking", f"azureml://{API}/mlflow/v1.0{WORKSPACE_PATH}?")
    if job.kind != "Pipeline":
        uri = f"azureml://datastores/workspaceartifactstore/ExperimentRun/dcid.{job.name}"
        sent["outputs"]["default"] = {"jobOutputType": "uri_folder", "uri": uri}
    body["properties"] = {
        **answers.job(sent),
        "displayName": job.display_name,
        "experimentName": job.experiment,
        "status": job.status,
        "isArchived": job.archived,
        "tags": job.tags,
        "properties": {**_PROPERTIES.get(job.kind, {}), **(sent.get("properties") or {}), **job.run_properties},
        "services": services,
    }
    return body


_PROPERTIES = {
    "Command": {"_azureml.ComputeTargetType": "amlctrain"},
    "Pipeline": {"azureml.runsource": "azureml.PipelineRun", "runSource": "MFE", "runType": "HTTP"},
    "Sweep": {"azureml.runsource": "hyperdrive", "runTemplate": "HyperDrive", "platform": "AML"},
}
_FIRST_STATUS = {"Command": "Starting", "Pipeline": "Preparing", "Sweep": "Running"}
"""What the answer to a new job says of its state."""


def submit(azure: FakeAzure, name: str, properties: dict[str, Any]) -> Job:
    """Takes a job, which stays queued until a test moves it. Raises Refusal where its components do not exist."""
    for node in (properties.get("jobs") or {}).values():
        if identity := node.get("componentId"):
            try:
                check_reference(azure, parse(identity))
            except Refusal as refusal:
                raise Refusal(404, "NotFound", f"key: {identity}, Message: {refusal.message}") from None
    job = Job(name, properties, display_name=str(properties.get("displayName") or name))
    job.tags = dict(properties.get("tags") or {})
    azure.jobs[name] = job
    return job


def named(azure: FakeAzure, name: str) -> Job:
    """Raises Refusal where there is no such job."""
    if name not in azure.jobs:
        raise not_found(f"Run {name}")
    return azure.jobs[name]


@route(MANAGEMENT, "GET", "{workspace}/jobs")
def list_jobs(azure: FakeAzure, request: Request) -> Answer:
    """The newest first, without the steps of pipelines."""
    jobs = [body(job) for job in reversed(azure.jobs.values()) if not job.parent]
    return azure.page(request, viewed(request, jobs))


@route(MANAGEMENT, "GET", "{workspace}/jobs/{name}")
def get_job(azure: FakeAzure, request: Request, name: str) -> Answer:
    return Answer.of(body(named(azure, name)))


@route(MANAGEMENT, "PUT", "{workspace}/jobs/{name}")
def put_job(azure: FakeAzure, request: Request, name: str) -> Answer:
    """A new job; of one that is there only what is said about it can change."""
    properties = request.json.get("properties") or {}
    job = azure.jobs.get(name)
    if job is None:
        made = body(submit(azure, name, properties))
        made["properties"]["status"] = _FIRST_STATUS[properties["jobType"]]
        return created(request, made)
    job.tags = dict(properties.get("tags") or {})
    job.display_name = properties.get("displayName") or job.display_name
    job.archived = bool(properties.get("isArchived"))
    return Answer.of(body(job))


@route(MANAGEMENT, "POST", "{workspace}/jobs/{name}/cancel")
def cancel_job(azure: FakeAzure, request: Request, name: str) -> Answer:
    job = named(azure, name)
    if job.status in ENDED:
        raise user_error(f"Run {name} is in a terminal state {job.status} and cannot be cancelled.")
    job.move("CancelRequested")
    place = operations.place(request, "mfeOperationResults", f"jc:{uuid.uuid4()}:{name}")
    return Answer.of(None, 202, Location=place)


@route(MANAGEMENT, "GET", operations.PATH.format(kind="mfeOperationResults") + "/jc:{workspace_id}:{name}")
def cancel_result(azure: FakeAzure, request: Request, location: str, workspace_id: str, name: str) -> Answer:
    """The job is cancelled after the first look."""
    job = named(azure, name)
    if job.status in ENDED:
        return Answer()
    job.move("Canceled")
    return Answer.of({}, 202, Location=f"https://{request.host}{request.target}")


def _service(kind: str, endpoint: str) -> dict[str, Any]:
    nothing = dict.fromkeys(("port", "status", "errorMessage", "properties", "nodes"))
    return {"jobServiceType": kind, "endpoint": endpoint, **nothing}
