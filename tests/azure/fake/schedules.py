"""Schedules: stored, shown, enabled and disabled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allranks_client import run_history
from allranks_client.emulation import resource
from allranks_client.messages import Answer, Refusal, Request, user_error
from fake import operations
from fake.names import MANAGEMENT, WORKSPACE_PATH
from fake.routing import route

if TYPE_CHECKING:
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
    definition = properties["action"]["jobDefinition"]
    kept = {
        "description": None,
        "tags": {},
        "properties": {},
        "displayName": None,
        **properties,
        "isEnabled": properties.get("isEnabled") is not False,
        "action": {**properties["action"], "jobDefinition": run_history.schedule_properties(definition)},
        "provisioningState": "Succeeded",
    }
    made = resource(WORKSPACE_PATH, f"/schedules/{name}", kept, azure.schedules.get(name))
    # The service tells no id of a schedule, and nothing but properties of one that is being made.
    del made["id"], made["type"]

    def store() -> None:
        azure.schedules[name] = made

    return operations.begin(azure, request, 201, store, {"properties": {**kept, "provisioningState": "Creating"}})


@route(MANAGEMENT, "DELETE", "{workspace}/schedules/{name}")
def delete_schedule(azure: FakeAzure, request: Request, name: str) -> Answer:
    """An enabled one is not deleted."""
    if _named(azure, name)["properties"]["isEnabled"]:
        raise user_error(f"Schedule {name} is enabled. Disable it before deleting it.")
    return operations.begin(azure, request, 202, lambda: azure.schedules.pop(name, None))


def _named(azure: FakeAzure, name: str) -> dict[str, Any]:
    if name not in azure.schedules:
        raise Refusal(404, "UserError", f"Resource Trigger {name} not found", inner=("NotFound",))
    return azure.schedules[name]
