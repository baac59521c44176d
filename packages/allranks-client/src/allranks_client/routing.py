"""Find the function that answers a request, by its host, method and path."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from allranks_client.messages import Answer, Request

MANAGEMENT = "management.azure.com"
API = "eastus.api.azureml.ms"
REGISTRY_HOST = "cert-eastus.experiments.azureml.net"

Handler: TypeAlias = Callable[..., Answer]
"""Takes the service, the request, and the named parts of the path."""

_PROVIDER = r"/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.MachineLearningServices"
_PREFIXES = {
    "{provider}": _PROVIDER,
    "{workspace}": f"{_PROVIDER}/workspaces/[^/]+",
    "{registry}": f"{_PROVIDER}/registries/[^/]+",
}


@dataclass(frozen=True)
class Route:
    """A function that answers requests. signed: whether a request needs a token"""

    host: str
    method: str
    pattern: re.Pattern[str]
    handler: Handler
    signed: bool


class Routes:
    """A table of functions. `shared` answers the requests for which the table has no function."""

    def __init__(self, shared: Routes | None = None) -> None:
        self._own: list[Route] = []
        self._shared = shared

    def __iter__(self) -> Iterator[Route]:
        yield from self._own
        yield from self._shared or ()

    def route(self, host: str, method: str, *templates: str, signed: bool = True) -> Callable[[Handler], Handler]:
        """Add a function. A template is a path with ``{name}`` for a segment and ``{name:path}`` for any text.
        ``{workspace}``, ``{registry}`` and ``{provider}`` match all their paths."""

        def add(handler: Handler) -> Handler:
            self._own.extend(Route(host, method, _pattern(template), handler, signed) for template in templates)
            return handler

        return add

    def find(self, request: Request) -> tuple[Route, dict[str, str]] | None:
        """Return the route of a request, with the named parts of its path. Ignore case, as Azure does."""
        for route in self:
            if (route.host, route.method) == (request.host, request.method):
                match = route.pattern.fullmatch(request.path)
                if match:
                    return route, match.groupdict()
        return None


def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"(\{\w+(?::path)?\})", template)
    return re.compile("".join(_PREFIXES.get(part) or _part(part) for part in parts), re.IGNORECASE)


def _part(part: str) -> str:
    if not part.startswith("{"):
        return re.escape(part)
    name, _, kind = part[1:-1].partition(":")
    return f"(?P<{name}>{'.*' if kind else '[^/]+'})"
