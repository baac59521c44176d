"""Schedules: stored, shown, enabled and disabled; they fire when a test says so."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from allranks_client.emulation import resource
from allranks_client.messages import Answer, Refusal, Request, user_error
from fake import answers, jobs, operations
from fake.job_checks import check_job
from fake.name_rules import complaint
from fake.names import MANAGEMENT, WORKSPACE_PATH
from fake.routing import route

if TYPE_CHECKING:
    from fake.jobs import Job
    from fake.service import FakeAzure


@route(MANAGEMENT, "GET", "{workspace}/schedules")
def list_schedules(azure: FakeAzure, request: Request) -> Answer:
    view = request.query.get("listViewType", "EnabledOnly")
    wanted = {"EnabledOnly": (True,), "DisabledOnly": (False,)}.get(view, (True, False))
    found = [body for body in azure.schedules.values() if body["properties"]["isEnabled"] in wanted]
    return azure.page(request, found)


@route(MANAGEMENT, "GET", "{workspace}/schedules/{name}")
def get_schedule(azure: FakeAzure, request: Request, name: str) -> Answer:
    return Answer.of(_named(azure, name))


@route(MANAGEMENT, "PUT", "{workspace}/schedules/{name}")
def put_schedule(azure: FakeAzure, request: Request, name: str) -> Answer:
    properties = request.json.get("properties") or {}
    if wrong := complaint("schedules", name):
        raise user_error(wrong)
    _check_trigger(properties.get("trigger") or {})
    definition = properties["action"]["jobDefinition"]
    check_job(azure, _definition(azure, definition))
    kept = {
        "description": None,
        "tags": {},
        "properties": {},
        "displayName": None,
        **properties,
        "isEnabled": properties.get("isEnabled") is not False,
        "action": {**properties["action"], "jobDefinition": _shown(definition)},
        "provisioningState": "Succeeded",
    }
    made = resource(WORKSPACE_PATH, f"/schedules/{name}", kept, azure.schedules.get(name))
    # The service tells no id of a schedule, and nothing but properties of one that is being made.
    del made["id"], made["type"]

    def store() -> None:
        azure.schedules[name] = made

    return operations.begin(azure, request, 201, store, {"properties": {**kept, "provisioningState": "Creating"}})


def _shown(definition: dict[str, Any]) -> dict[str, Any]:
    return definition if definition.get("sourceJobId") else answers.scheduled_job(definition)


@route(MANAGEMENT, "DELETE", "{workspace}/schedules/{name}")
def delete_schedule(azure: FakeAzure, request: Request, name: str) -> Answer:
    """An enabled one is not deleted."""
    if _named(azure, name)["properties"]["isEnabled"]:
        raise user_error(f"Schedule {name} is enabled. Disable it before deleting it.")
    return operations.begin(azure, request, 202, lambda: azure.schedules.pop(name, None))


@route(MANAGEMENT, "POST", "{workspace}/schedules/{name}/trigger")
def trigger_schedule(azure: FakeAzure, request: Request, name: str) -> Answer:
    job = fire(azure, name)
    return Answer.of({"submissionId": job.name, "scheduleActionType": "CreateJob"})


def fire(azure: FakeAzure, name: str) -> Job:
    """Submits the schedule's job, as at its hour. Raises Refusal."""
    properties = _named(azure, name)["properties"]
    definition = _definition(azure, properties["action"]["jobDefinition"])
    tags = {**(definition.get("tags") or {}), "azureml.scheduleName": name}
    return jobs.submit(azure, f"{name}-{uuid.uuid4().hex[:12]}", {**definition, "tags": tags})


def _definition(azure: FakeAzure, definition: dict[str, Any]) -> dict[str, Any]:
    """The job itself, also where the schedule only names one that ran before."""
    source = definition.get("sourceJobId")
    if not source:
        return definition
    ran = jobs.named(azure, source.rpartition("/")[2]).properties or {}
    return {**ran, **{key: value for key, value in definition.items() if value not in (None, {}, [])}}


def _named(azure: FakeAzure, name: str) -> dict[str, Any]:
    if name not in azure.schedules:
        raise Refusal(404, "UserError", f"Resource Trigger {name} not found", inner=("NotFound",))
    return azure.schedules[name]


def _check_trigger(trigger: dict[str, Any]) -> None:
    kind = trigger.get("triggerType")
    if kind == "Cron":
        if len(str(trigger.get("expression", "")).split()) != 5:
            raise user_error(f"The cron expression '{trigger.get('expression')}' is invalid.")
    elif kind == "Recurrence":
        if int(trigger.get("interval") or 0) < 1:
            raise user_error(f"The recurrence interval {trigger.get('interval')} is invalid.")
        schedule = trigger.get("schedule") or {}
        if any(not 0 <= hour <= 23 for hour in schedule.get("hours") or []):
            raise user_error("The recurrence schedule has an invalid hour.")
