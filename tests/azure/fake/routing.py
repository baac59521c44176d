"""Which function answers a request: one of the fake's own, or one that it shares with `LocalClient`'s service."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from allranks_client import assets, run_history  # noqa: F401  # they add functions
from allranks_client.emulation import SHARED
from allranks_client.messages import Answer, Refusal, Request
from allranks_client.routing import Routes
from fake import identity
from fake.names import GROUP, SUBSCRIPTION, WORKSPACE

if TYPE_CHECKING:
    from fake.service import FakeAzure

ROUTES = Routes(SHARED)
route = ROUTES.route


def answer(azure: FakeAzure, request: Request) -> Answer:
    """What the route's function says. Raises Refusal."""
    _check_scope(request)
    found = ROUTES.find(request)
    if found is None:
        azure.unknown.append((request.method, f"{request.host}{request.path}"))
        raise Refusal(404, "NotFound", f"The fake has no route for {request.method} {request.host}{request.path}.")
    place, parts = found
    if place.signed:
        identity.check(azure, request)
    return place.handler(azure, request, **parts)


_SCOPE = re.compile(
    r".*/subscriptions/(?P<subscription>[^/]+)/resourceGroups/(?P<group>[^/]+)"
    r"/providers/Microsoft\.MachineLearningServices/workspaces/(?P<workspace>[^/]+)(/.*)?",
    re.IGNORECASE,
)


def _check_scope(request: Request) -> None:
    """Raises Refusal where the path names a subscription, a group or a workspace that is not there."""
    scope = _SCOPE.fullmatch(request.path)
    if scope is None:
        return
    if scope["subscription"].lower() != SUBSCRIPTION:
        raise Refusal(404, "SubscriptionNotFound", f"The subscription '{scope['subscription']}' could not be found.")
    if scope["group"].lower() != GROUP:
        raise Refusal(404, "ResourceGroupNotFound", f"Resource group '{scope['group']}' could not be found.")
    if scope["workspace"].lower() != WORKSPACE:
        message = (
            f"The Resource 'Microsoft.MachineLearningServices/workspaces/{scope['workspace']}' under resource group "
            f"'{scope['group']}' was not found. For more details please go to https://aka.ms/ARMResourceNotFoundFix"
        )
        raise Refusal(404, "ResourceNotFound", message)
