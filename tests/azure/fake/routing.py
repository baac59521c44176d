"""Which function answers a request: one of the fake's own, or one that it shares with `LocalClient`'s service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allranks_client import assets, run_history  # noqa: F401  # they add functions
from allranks_client.emulation import SHARED
from allranks_client.messages import Answer, Refusal, Request
from allranks_client.routing import Routes
from fake import identity

if TYPE_CHECKING:
    from fake.service import FakeAzure

ROUTES = Routes(SHARED)
route = ROUTES.route


def answer(azure: FakeAzure, request: Request) -> Answer:
    """What the route's function says. Raises Refusal."""
    found = ROUTES.find(request)
    if found is None:
        azure.unknown.append((request.method, f"{request.host}{request.path}"))
        raise Refusal(404, "NotFound", f"The fake has no route for {request.method} {request.host}{request.path}.")
    place, parts = found
    if place.signed:
        identity.check(azure, request)
    return place.handler(azure, request, **parts)
