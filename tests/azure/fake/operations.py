"""Long-running operations: accepted at once, done after some looks at them, and sometimes a failure at the end."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fake.messages import Answer, Refusal, Request
from fake.names import LOCATION, MANAGEMENT, SUBSCRIPTION
from fake.routing import route

if TYPE_CHECKING:
    from fake.service import FakeAzure

_PROVIDER = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.MachineLearningServices/locations"


@dataclass
class Operation:
    """left: how many looks see it in progress; finish: makes the change; error: how it fails in the end instead"""

    left: int
    finish: Callable[[], Any]
    error: Refusal | None = None
    status: str = "InProgress"


def begin(
    azure: FakeAzure, request: Request, status: int, finish: Callable[[], Any], body: dict[str, Any] | None = None
) -> Answer:
    """Accepts a change, which is made when a client has looked at the operation often enough."""
    identity, error = str(uuid.uuid4()), azure.operation_error
    azure.operation_error = None
    azure.operations[identity] = Operation(azure.operation_looks, finish, error)
    place = (
        f"https://{request.host}{_PROVIDER}/{LOCATION}/mfeOperationsStatus/{identity}?api-version=2023-06-01-preview"
    )
    headers = {"Azure-AsyncOperation": place, "Retry-After": "1"}
    return Answer(status, b"", headers) if body is None else Answer.of(body, status, **headers)


@route(MANAGEMENT, "GET", f"{_PROVIDER}/{{location}}/mfeOperationsStatus/{{operation}}")
def look(azure: FakeAzure, request: Request, location: str, operation: str) -> Answer:
    found = azure.operations.get(operation)
    if found is None:
        raise Refusal(404, "OperationNotFound", f"The operation {operation} was not found.")
    if found.left > 0:
        found.left -= 1
        return Answer.of({"id": request.path, "name": operation, "status": "InProgress"}, Retry_After="1")
    if found.status == "InProgress":
        if found.error is None:
            found.finish()
        found.status = "Failed" if found.error else "Succeeded"
    told: dict[str, Any] = {"id": request.path, "name": operation, "status": found.status}
    if found.error:
        told["error"] = {"code": found.error.code, "message": found.error.message, "details": []}
    return Answer.of(told)
