"""Which function answers a request, by its host, method and path."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from fake import api_versions, identity
from fake.messages import Answer, Refusal, Request
from fake.names import GROUP, PROVIDER_PATH, REGISTRY_PATH, SUBSCRIPTION, WORKSPACE, WORKSPACE_PATH

if TYPE_CHECKING:
    from fake.service import FakeAzure

Handler: TypeAlias = "Callable[..., Answer]"
"""Takes the service, the request, and what stands in the path by name."""

_PREFIXES = {"{workspace}": WORKSPACE_PATH, "{registry}": REGISTRY_PATH, "{provider}": PROVIDER_PATH}


@dataclass(frozen=True)
class Route:
    """signed: whether a token is asked for"""

    host: str
    method: str
    pattern: re.Pattern[str]
    handler: Handler
    signed: bool


_ROUTES: list[Route] = []


def route(host: str, method: str, *templates: str, signed: bool = True) -> Callable[[Handler], Handler]:
    """Puts a function into the table. A template is a path with ``{name}`` for a part, ``{name:path}`` for the rest;
    ``{workspace}``, ``{registry}`` and ``{provider}`` stand for the paths of what there is."""

    def put(handler: Handler) -> Handler:
        _ROUTES.extend(Route(host, method, _pattern(template), handler, signed) for template in templates)
        return handler

    return put


def find(request: Request) -> tuple[Route, dict[str, str]] | None:
    """The route of a request, with what stands in its path. ARM's paths are case-insensitive."""
    for found in _ROUTES:
        if found.host == request.host and found.method == request.method:
            match = found.pattern.fullmatch(request.path)
            if match:
                return found, match.groupdict()
    return None


def _pattern(template: str) -> re.Pattern[str]:
    for name, prefix in _PREFIXES.items():
        template = template.replace(name, prefix)
    parts = re.split(r"(\{\w+(?::path)?\})", template)
    written = "".join(
        re.escape(part) if not part.startswith("{") else _group(part[1:-1].partition(":")) for part in parts
    )
    return re.compile(written, re.IGNORECASE)


def _group(part: tuple[str, str, str]) -> str:
    name, _, kind = part
    return f"(?P<{name}>{'.*' if kind else '[^/]+'})"


def answer(azure: FakeAzure, request: Request) -> Answer:
    """What the route's function says. Raises Refusal."""
    found = find(request)
    if found is None:
        _check_scope(request)
        azure.unknown.append((request.method, f"{request.host}{request.path}"))
        raise Refusal(404, "NotFound", f"The fake has no route for {request.method} {request.host}{request.path}.")
    place, parts = found
    if place.signed:
        identity.check(azure, request)
        api_versions.check(request)
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
