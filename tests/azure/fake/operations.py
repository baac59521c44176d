"""Long-running operations: accepted at once, done at the first look at them, and sometimes a failure at the end."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from allranks_client.emulation import timestamp
from allranks_client.messages import Answer, Refusal, Request
from fake.names import LOCATION, MANAGEMENT, SUBSCRIPTION
from fake.routing import route

if TYPE_CHECKING:
    from fake.service import FakeAzure

_PROVIDER = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.MachineLearningServices/locations"
PATH = f"{_PROVIDER}/{{{{location}}}}/{{kind}}"
"""Where operations are, by their kind."""


@dataclass
class Operation:
    """finish: makes the change; error: how it fails instead"""

    began: str
    finish: Callable[[], Any]
    error: Refusal | None = None
    status: str = "InProgress"


def begin(
    azure: FakeAzure, request: Request, status: int, finish: Callable[[], Any], body: dict[str, Any] | None = None
) -> Answer:
    """Accepts a change, which is made when a client looks at the operation."""
    identity, error = f"s:{uuid.uuid4()}:{uuid.uuid4().hex}", azure.operation_error
    azure.operation_error = None
    azure.operations[identity] = Operation(timestamp(), finish, error)
    # What a DELETE gives has no place of its own.
    result = (
        place(request, "mfeOperationResults", identity) if body is None else f"https://{request.host}{request.target}"
    )
    headers = {"Azure-AsyncOperation": place(request, "mfeOperationsStatus", identity), "Location": result}
    return Answer.of(body, status, **headers)


def place(request: Request, kind: str, identity: str) -> str:
    """The address of an operation."""
    path = PATH.format(kind=kind).format(location=LOCATION)
    return f"https://{request.host}{path}/{identity}?api-version={request.query['api-version']}"


@route(MANAGEMENT, "GET", PATH.format(kind="mfeOperationsStatus") + "/{operation}")
def look(azure: FakeAzure, request: Request, location: str, operation: str) -> Answer:
    found = azure.operations.get(operation)
    if found is None:
        raise Refusal(404, "OperationNotFound", f"The operation {operation} was not found.")
    shown = {"id": request.path.replace("Status", "Results"), "name": operation, "startTime": found.began}
    if found.status == "InProgress":
        if found.error is None:
            found.finish()
        found.status = "Failed" if found.error else "Succeeded"
    told: dict[str, Any] = {**shown, "status": found.status, "endTime": timestamp()}
    if found.error:
        told["error"] = {"code": found.error.code, "message": found.error.message, "details": []}
    return Answer.of(told)
