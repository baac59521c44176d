"""The api-versions in which each operation is asked for by the clients of azure-ai-ml 1.35.2: any other is refused.

Azure takes more than these. A client that asks in another version than the SDK's would be answered in other words.
"""

from __future__ import annotations

import re

from allranks_client.messages import Refusal, Request
from fake.names import API, MANAGEMENT, REGISTRY_HOST

_ASSETS = "2023-04-01-preview"
_VERSIONS: dict[str, list[tuple[str, str, set[str]]]] = {
    MANAGEMENT: [
        ("GET", r"workspaces(/[^/]+)?", {"2024-10-01-preview"}),
        ("GET|POST", r"workspaces/[^/]+/datastores(/.*)?", {"2024-10-01-preview"}),
        ("GET|POST|PUT", r"workspaces/[^/]+/codes/.*", {"2023-04-01"}),
        ("GET|PUT", r"workspaces/[^/]+/components(/.*)?", {"2024-01-01-preview"}),
        ("GET|PUT", r"workspaces/[^/]+/environments(/.*)?", {_ASSETS}),
        ("GET|PUT", r"workspaces/[^/]+/data(/.*)?", {_ASSETS}),
        ("GET|PUT", r"workspaces/[^/]+/models(/.*)?", {"2023-08-01-preview"}),
        ("GET|POST", r"workspaces/[^/]+/computes(/.*)?", {"2023-08-01-preview"}),
        ("GET", r"workspaces/[^/]+/jobs(/[^/]+)?", {"2024-01-01-preview"}),
        ("PUT", r"workspaces/[^/]+/jobs/[^/]+", {"2024-01-01-preview", "2025-01-01-preview"}),
        ("POST", r"workspaces/[^/]+/jobs/[^/]+/cancel", {_ASSETS}),
        ("GET|PUT|DELETE", r"workspaces/[^/]+/schedules(/[^/]+)?", {"2023-06-01-preview"}),
        ("GET", r"locations/[^/]+/(vmSizes|usages|quotas)", {"2023-08-01-preview"}),
        ("GET", r"locations/[^/]+/mfeOperationsStatus/.*", {"2023-06-01-preview"}),
        ("GET", r"locations/[^/]+/mfeOperationResults/.*", {_ASSETS}),
    ],
    API: [
        ("GET|PATCH|POST", r"(?s).*", {"v1.0", "1.5.0"}),
    ],
    REGISTRY_HOST: [("GET|PUT", r"registries/.*", {"2021-10-01-dataplanepreview"})],
}
_AFTER = re.compile(r".*/providers/Microsoft\.MachineLearningServices/(?P<rest>.*)", re.IGNORECASE)


def check(request: Request) -> None:
    """Raises Refusal for a request without a version, and for one in a version that its operation does not have."""
    match = _AFTER.fullmatch(request.path)
    if match is None:
        return
    for methods, pattern, versions in _VERSIONS.get(request.host, []):
        if re.fullmatch(methods, request.method) and re.fullmatch(pattern, match["rest"], re.IGNORECASE):
            _compare(request, versions)
            return


def _compare(request: Request, versions: set[str]) -> None:
    given = request.query.get("api-version")
    if not given:
        message = "The api-version query parameter (?api-version=) is required for all requests."
        raise Refusal(400, "MissingApiVersionParameter", message)
    if given not in versions:
        supported = ", ".join(sorted(versions))
        message = (
            f"The api-version '{given}' is not supported for {request.method} {request.path}. The supported versions "
            f"are '{supported}'."
        )
        raise Refusal(400, "InvalidApiVersionParameter", message)
