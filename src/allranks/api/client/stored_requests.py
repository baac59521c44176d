"""Schedules, batch endpoints and their deployments, as the client has sent them: in ``assets`` of the workspace folder,
each at its path."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from allranks.api.client.service import Answer, LocalService, Refusal, Request, not_found, resource, route, write_json

SCHEDULES, ENDPOINTS, DEPLOYMENTS = "/schedules", "/batchEndpoints", "/batchEndpoints/{endpoint}/deployments"
_KINDS = (SCHEDULES, ENDPOINTS, DEPLOYMENTS)
_ONE = tuple(f"{kind}/{{name}}" for kind in _KINDS)
_VIEWS = {"EnabledOnly": (True,), "DisabledOnly": (False,)}


def _file(service: LocalService, path: str) -> Path:
    return service.workspace.root / "assets" / f"{path.strip('/')}.json"


def find(service: LocalService, path: str) -> dict[str, Any]:
    """Return what is stored at a path. Raise Refusal if nothing is."""
    try:
        return dict(json.loads(_file(service, path).read_text(encoding="utf-8")))
    except FileNotFoundError:
        raise not_found(path.strip("/")) from None


def save(service: LocalService, request: Request, properties: dict[str, Any], **more: Any) -> Answer:
    """Store what the client has sent, with what the service adds. more: what else the resource has"""
    body = resource(request, request.path, {**properties, "provisioningState": "Succeeded"}, **more)
    file = _file(service, request.path)
    if not (is_new := not file.exists()):
        body["systemData"]["createdAt"] = find(service, request.path)["systemData"]["createdAt"]
    write_json(file, body)
    return Answer(body, 201 if is_new else 200)


@route("GET", *_KINDS)
def list_stored(service: LocalService, request: Request, **_: str) -> Answer:
    states = _VIEWS.get(request.query.get("listViewType", "EnabledOnly"), (True, False))
    files = sorted(_file(service, request.path).with_suffix("").glob("*.json"))
    found = [find(service, f"{request.path}/{file.stem}") for file in files]
    return Answer({"value": [body for body in found if body["properties"].get("isEnabled", states[0]) in states]})


@route("GET", *_ONE)
def get_stored(service: LocalService, request: Request, **_: str) -> Answer:
    return Answer(find(service, request.path))


@route("DELETE", *_ONE)
def delete_stored(service: LocalService, request: Request, name: str, **_: str) -> Answer:
    """Delete one, and the deployments of an endpoint. As on Azure ML, an enabled schedule is not deleted."""
    if find(service, request.path)["properties"].get("isEnabled"):
        raise Refusal(400, f"Schedule {name} is enabled. Disable it before deleting it.")
    _file(service, request.path).unlink()
    shutil.rmtree(_file(service, request.path).with_suffix(""), ignore_errors=True)
    return Answer(None)
