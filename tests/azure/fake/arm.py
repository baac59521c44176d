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
    """A time as Azure writes it."""
    return datetime.fromtimestamp(time.time() if seconds is None else seconds, timezone.utc).isoformat()


def resource(
    identity: str, name: str, kind: str, properties: Any, before: dict[str, Any] | None = None
) -> dict[str, Any]:
    """A resource. before: what it was, whose time of making stays."""
    data = {"createdBy": "somebody", "createdByType": "User", "lastModifiedAt": now(), "lastModifiedBy": "somebody"}
    created = before["systemData"]["createdAt"] if before else data["lastModifiedAt"]
    return {
        "id": identity,
        "name": name,
        "type": f"Microsoft.MachineLearningServices/workspaces/{kind}",
        "properties": properties,
        "systemData": {"createdAt": created, **data, "lastModifiedByType": "User"},
    }


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
