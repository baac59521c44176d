"""Schedules that a client has created: in ``assets/schedules`` of the workspace folder as the client has sent them, and
in the ledger, by which `allranks schedules run` runs them."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from allranks.api import jobs
from allranks.api.client import job_requests
from allranks.api.client.service import Answer, LocalService, Refusal, Request, read_json, resource, route, write_json
from allranks.errors import InputError, Problem
from allranks.local.scheduler import reading
from allranks.local.scheduler.ledger import CREATED, Ledger, SchedulesPlace
from allranks.plan import codec
from allranks.plan.graph import Plan
from allranks.plan.secrets import restored
from allranks.runs import history, secret_values
from allranks.runs.store import Store
from allranks.runs.workspace import Workspace
from allranks.schedules import finding

_VIEWS = {"EnabledOnly": (True,), "DisabledOnly": (False,)}


def create(workspace: Workspace, original: Callable[..., Any], schedule: Any, **options: Any) -> Any:
    """Create or change a schedule, in the ledger too.

    original: the SDK's function, whose request `put_schedule` answers

    Raise InputError if its trigger is invalid, if its job is not a pipeline, or if it cannot run here.
    """
    from azure.ai.ml.entities import Job, JobSchedule

    if not isinstance(schedule, JobSchedule):
        return original(schedule, **options)
    declared = finding.declared(schedule, CREATED)
    if declared.problem:
        raise InputError(declared.problem)
    plan = None
    if schedule.creation_context is None:  # else the service has returned it, with ids in place of the job's parts
        is_job = isinstance(schedule.create_job, Job)
        plan = (
            jobs.read(schedule.create_job, None, workspace) if is_job else _plan_of_run(workspace, schedule.create_job)
        )
    poller = original(schedule, **options)
    reading.put(SchedulesPlace(workspace), declared.schedule, plan, enabled=poller.result().is_enabled)
    return poller


def _plan_of_run(workspace: Workspace, job: str) -> Plan:
    """Return the plan of a job that has run here. Raise InputError if there is no such job."""
    record = history.run(workspace, _job_name(job))
    with Store(workspace.database) as store:
        plan = store.plan(record.id)
    return codec.loads(restored(plan, secret_values.load(Path(record.folder))))


def _job_name(job: str) -> str:
    return job.rpartition("/")[2].removeprefix("azureml:")


def _file(service: LocalService, name: str) -> Path:
    return service.workspace.root / "assets/schedules" / f"{name}.json"


def _find(service: LocalService, name: str) -> dict[str, Any]:
    return read_json(_file(service, name), f"Schedule {name}")


@route("GET", "/schedules")
def list_schedules(service: LocalService, request: Request) -> Answer:
    states = _VIEWS.get(request.query.get("listViewType", "EnabledOnly"), (True, False))
    found = [_find(service, file.stem) for file in sorted(_file(service, "").parent.glob("*.json"))]
    return Answer({"value": [body for body in found if body["properties"]["isEnabled"] in states]})


@route("GET", "/schedules/{name}")
def get_schedule(service: LocalService, request: Request, name: str) -> Answer:  # noqa: ARG001
    return Answer(_find(service, name))


@route("PUT", "/schedules/{name}")
def put_schedule(service: LocalService, request: Request, name: str) -> Answer:
    properties = request.body["properties"]
    if properties["action"]["actionType"] != "CreateJob":
        found, expected = f"an action {properties['action']['actionType']}", "a JobSchedule"
        raise InputError(Problem(f"LocalClient, schedule {name}", found, expected, "schedule a pipeline"))
    if "sourceJobId" not in (job := properties["action"]["jobDefinition"]):
        job |= {"status": "NotStarted", "outputs": job_requests.outputs_of(job)}
    kept = {**properties, "isEnabled": properties.get("isEnabled") is not False, "provisioningState": "Succeeded"}
    body = resource(request, f"/schedules/{name}", kept)
    is_new = not _file(service, name).exists()
    if not is_new:
        body["systemData"]["createdAt"] = _find(service, name)["systemData"]["createdAt"]
    write_json(_file(service, name), body)
    return Answer(body, 201 if is_new else 200)


@route("DELETE", "/schedules/{name}")
def delete_schedule(service: LocalService, request: Request, name: str) -> Answer:  # noqa: ARG001
    """Delete a schedule. As on Azure ML, an enabled one is not deleted."""
    if _find(service, name)["properties"]["isEnabled"]:
        raise Refusal(400, f"Schedule {name} is enabled. Disable it before deleting it.")
    _file(service, name).unlink()
    return Answer(None)


@route("POST", "/schedules/{name}/trigger")
def trigger_schedule(service: LocalService, request: Request, name: str) -> Answer:  # noqa: ARG001
    """Start the job of a schedule now."""
    definition, place = _find(service, name)["properties"]["action"]["jobDefinition"], SchedulesPlace(service.workspace)
    with Ledger(place.ledger) as ledger:
        plan = codec.loads(restored(ledger.plan(name), secret_values.load(place.secrets(name))))
    if source := definition.get("sourceJobId"):
        sent = job_requests.properties_of(history.run(service.workspace, _job_name(source)))
        definition = {**sent, **{key: value for key, value in definition.items() if value not in (None, "", {}, [])}}
    definition["tags"] = {**(definition.get("tags") or {}), "azureml.scheduleName": name}
    job = f"{name}-{uuid.uuid4().hex[:12]}"
    job_requests.start(service, job, definition, plan, trigger_time=datetime.now(timezone.utc))
    return Answer({"submissionId": job, "scheduleActionType": "CreateJob"})
