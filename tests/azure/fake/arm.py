"""What all resources of Azure Resource Manager have in common."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from fake.messages import Answer, Request

if TYPE_CHECKING:
    from fake.service import FakeAzure


def now(seconds: float | None = None) -> str:
    """A time as Azure writes it: with seven digits of a second."""
    moment = datetime.fromtimestamp(time.time() if seconds is None else seconds, timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}1+00:00"


def resource(
    identity: str, name: str, kind: str, properties: Any, before: dict[str, Any] | None = None, created_by: str = "User"
) -> dict[str, Any]:
    """A resource. before: what it was, whose time of making stays. Of jobs and data the service does not tell who has
    changed them."""
    data = {"createdAt": now(), "createdBy": "somebody", "createdByType": created_by}
    changed = {"lastModifiedAt": now(), "lastModifiedBy": "somebody", "lastModifiedByType": created_by}
    if kind == "jobs":
        changed = {}
    elif kind == "data/versions":
        changed = {"lastModifiedAt": changed["lastModifiedAt"]}
    if before:
        data["createdAt"] = before["systemData"]["createdAt"]
    return {
        "id": identity,
        "name": name,
        "type": f"Microsoft.MachineLearningServices/workspaces/{kind}".rstrip("/"),
        "properties": properties,
        "systemData": {**data, **changed},
    }


def created(request: Request, body: dict[str, Any]) -> Answer:
    """201, with the place of what was made: that of the request, whatever id the body has."""
    return Answer.of(body, 201, Location=f"https://{request.host}{request.target}")


def viewed(request: Request, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what is archived, or with, or that alone: ``listViewType``."""
    view = request.query.get("listViewType", "ActiveOnly")
    if view == "All":
        return items
    return [item for item in items if bool(item["properties"].get("isArchived")) == (view == "ArchivedOnly")]


def page(azure: FakeAzure, request: Request, items: list[dict[str, Any]]) -> Answer:
    """A page of a list, with a link to the next where there is one."""
    start = int(request.query.get("$skip", 0))
    data: dict[str, Any] = {"value": items[start : start + azure.page_size]}
    if start + azure.page_size < len(items):
        query = {**request.query, "$skip": str(start + azure.page_size)}
        data["nextLink"] = f"https://{request.host}{request.path}?{urlencode(query)}"
    return Answer.of(data)
