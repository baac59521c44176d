"""Schedules created by a client. They are in the ledger too, so that `allranks schedules run` runs them."""

import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from allranks.api import jobs
from allranks.errors import InputError, Problem
from allranks.history import secret_values, stored
from allranks.history.store import Store
from allranks.plan import codec
from allranks.plan.graph import Plan
from allranks.plan.secrets import restored
from allranks.scheduler import reading
from allranks.scheduler.ledger import CREATED, Ledger
from allranks.scheduler.paths import SchedulerPaths
from allranks.schedules import finding
from allranks.workspace import Workspace
from allranks_client import local_jobs, run_history
from allranks_client.local_service import LocalService, route
from allranks_client.messages import Answer, Request
from allranks_client.routing import MANAGEMENT
from allranks_client.stored_requests import SCHEDULES, find, save


def create(workspace: Workspace, original: Callable[..., Any], schedule: Any, **options: Any) -> Any:
    """Create or change a schedule, in the ledger too.

    original: the SDK's function, whose request `put_schedule` answers

    Raise InputError if its trigger is invalid, if its job is not a pipeline, or if it cannot run here.
    """
    from azure.ai.ml.entities import Job, JobSchedule

    if not isinstance(schedule, JobSchedule):
        return original(schedule, **options)
    declared = finding.declared(schedule, CREATED)
    plan = None
    if schedule.creation_context is None:  # else the service has returned it, with ids instead of the job's parts
        is_job = isinstance(schedule.create_job, Job)
        plan = (
            jobs.read(schedule.create_job, None, workspace) if is_job else _plan_of_run(workspace, schedule.create_job)
        )
    poller = original(schedule, **options)
    reading.put(SchedulerPaths(workspace), declared, plan, enabled=poller.result().is_enabled)
    return poller


def _plan_of_run(workspace: Workspace, job: str) -> Plan:
    """Return the plan of a job that has run here. Raise InputError if there is no such job."""
    record = stored.run(workspace, _job_name(job))
    with Store(workspace.database) as store:
        plan = store.plan(record.id)
    return codec.loads(restored(plan, secret_values.load(Path(record.folder))))


def _job_name(job: str) -> str:
    return job.rpartition("/")[2].removeprefix("azureml:")


@route(MANAGEMENT, "PUT", "{workspace}" + SCHEDULES + "/{name}")
def put_schedule(service: LocalService, request: Request, name: str) -> Answer:
    properties = request.json["properties"]
    if properties["action"]["actionType"] != "CreateJob":
        found, expected = f"an action {properties['action']['actionType']}", "a JobSchedule"
        raise InputError(Problem(f"LocalClient, schedule {name}", found, expected, "schedule a pipeline"))
    if "sourceJobId" not in (job := properties["action"]["jobDefinition"]):
        properties["action"]["jobDefinition"] = run_history.schedule_properties(job)
    return save(service, request, {**properties, "isEnabled": properties.get("isEnabled") is not False})


@route(MANAGEMENT, "POST", "{workspace}" + SCHEDULES + "/{name}/trigger")
def trigger_schedule(service: LocalService, request: Request, name: str) -> Answer:
    """Start the job of a schedule now."""
    definition = find(service, f"{SCHEDULES}/{name}")["properties"]["action"]["jobDefinition"]
    place = SchedulerPaths(service.workspace)
    with Ledger(place.ledger) as ledger:
        plan = codec.loads(restored(ledger.plan(name), secret_values.load(place.secrets(name))))
    if source := definition.get("sourceJobId"):
        sent = local_jobs.properties_of(stored.run(service.workspace, _job_name(source)))
        definition = {**sent, **{key: value for key, value in definition.items() if value not in (None, "", {}, [])}}
    definition["tags"] = {**(definition.get("tags") or {}), "azureml.scheduleName": name}
    job = f"{name}-{uuid.uuid4().hex[:12]}"
    service.start_job(job, definition, plan, trigger_time=datetime.now(UTC))
    return Answer.of({"submissionId": job, "scheduleActionType": "CreateJob"})
