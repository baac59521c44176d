"""Jobs of the fake: a test moves them from state to state, and writes their logs."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from allranks_client import emulation, run_history
from allranks_client.messages import Answer, Refusal, Request, not_found, user_error
from allranks_client.run_history import ENDED, HISTORY
from fake import operations
from fake.names import API, GROUP, MANAGEMENT, STUDIO, SUBSCRIPTION, WORKSPACE
from fake.references import check_reference, parse
from fake.routing import route

if TYPE_CHECKING:
    from fake.service import FakeAzure

ARTIFACTS = "azureml"
"""The container of the artifact store."""


def artifacts(job: str) -> str:
    """Where a run's artifacts begin in the artifact store."""
    return f"ExperimentRun/dcid.{job}"


@dataclass
class Job(emulation.Job):
    """logs: names of logs, which lie in the artifact store"""

    logs: list[str] = field(default_factory=list)

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


@route(API, "GET", HISTORY + "/runs/{name}/details")
def get_details(azure: FakeAzure, request: Request, name: str) -> Answer:
    """Run history gets to know a job some time after its request."""
    job = named(azure, name)
    if azure.history_lag > 0 and not job.parent:
        azure.history_lag -= 1
        raise not_found(f"Run {name}")
    return Answer.of(run_history.details(azure, job))
