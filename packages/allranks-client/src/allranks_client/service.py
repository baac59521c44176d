"""The service that `LocalClient` talks to: an azure-core transport that answers Azure ML's requests from a workspace
folder. Nothing is sent.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

from allranks.errors import InputError, Problem
from allranks.history.workspace import Workspace, write_file
from allranks.sdk import internals

_LONGEST_WAIT = 0.05
"""Maximum seconds between two requests for a long-running operation."""

_PATH = re.compile(
    r"(?P<api>.*?)(?P<scope>/subscriptions/[^/]+/resourcegroups/[^/]+/providers/microsoft\.machinelearningservices"
    r"/(?P<holder>workspaces|registries)/(?P<name>[^/]+))(?P<path>/.*)?",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Request:
    """A request of the SDK.

    scope: the ARM id of the workspace that the client names, with which ids begin
    path:  below the workspace; the service's own prefix, such as ``history``, precedes it
    """

    method: str
    scope: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def workspace_name(self) -> str:
        return self.scope.rpartition("/")[2]

    @property
    def datastores(self) -> str:
        """The long form of ``azureml://datastores/``, as the service returns it."""
        scope = self.scope.replace("/providers/Microsoft.MachineLearningServices", "")
        return f"azureml:/{scope.replace('/resourceGroups/', '/resourcegroups/')}/datastores/"


@dataclass(frozen=True)
class Answer:
    """The body of a response, as JSON or as text."""

    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


class Refusal(Exception):
    """A response with an error, in the service's words."""

    def __init__(self, status: int, message: str, code: str = "UserError") -> None:
        super().__init__(message)
        self.status, self.code = status, code


def not_found(what: str) -> Refusal:
    """Return the error for something that does not exist."""
    return Refusal(404, f"{what} was not found.")


@dataclass
class LocalService:
    """What the handlers of requests use.

    workspace: the folder that holds assets, jobs and schedules
    submit:    starts the run of a job: takes its name and plan, and options of the run; returns the run's id
    new_jobs:  names of submitted jobs whose state run history has not been asked for yet
    registry:  the name of the registry whose service this is; "" for the workspace's
    home:      the folder of the workspace, below which those of its registries are
    account:   the name of the storage account, one for each folder
    """

    workspace: Workspace
    submit: Callable[..., str]
    new_jobs: set[str] = field(default_factory=set)
    registry: str = ""

    @property
    def home(self) -> Workspace:
        return Workspace(self.workspace.root.parents[1]) if self.registry else self.workspace

    def of_registry(self, name: str) -> LocalService:
        return replace(self, workspace=self.home.registry(name), registry=name)

    @property
    def account(self) -> str:
        return f"allranks{hashlib.sha256(str(self.workspace.root).encode()).hexdigest()[:12]}"


Handler: TypeAlias = Callable[..., Answer]
_ROUTES: list[tuple[str, re.Pattern[str], Handler]] = []


def route(method: str, *templates: str) -> Callable[[Handler], Handler]:
    """Let a function answer requests. A template is a path below the workspace, with ``{name}`` for a segment, and
    ``{name:REGEX}`` for what a regular expression matches."""

    def add(handler: Handler) -> Handler:
        for template in templates:
            named = re.sub(r"\{(\w+)\}", r"{\1:[^/]+}", template)
            pattern = re.sub(r"\{(\w+):([^}]+)\}", r"(?P<\1>\2)", named)
            _ROUTES.append((method, re.compile(pattern, re.IGNORECASE), handler))
        return handler

    return add


def resource(request: Request, path: str, properties: Any, created: float | None = None, **more: Any) -> dict[str, Any]:
    """Return a resource of Azure Resource Manager. path: below the workspace, ending with its name"""
    moment = timestamp(time.time() if created is None else created)
    person = {"createdBy": "this machine", "createdByType": "User", "createdAt": moment, "lastModifiedAt": moment}
    return {
        "id": f"{request.scope}{path}",
        "name": path.rpartition("/")[2] or request.workspace_name,
        "properties": properties,
        "systemData": {**person, "lastModifiedBy": "this machine", "lastModifiedByType": "User"},
        **more,
    }


def viewed(request: Request, items: list[dict[str, Any]]) -> Answer:
    """Return a list of resources, archived ones as ``listViewType`` says."""
    view = request.query.get("listViewType", "ActiveOnly")
    if view != "All":
        archived = view == "ArchivedOnly"
        items = [item for item in items if bool(item["properties"].get("isArchived")) == archived]
    return Answer({"value": items})


def write_json(file: Path, value: Any) -> None:
    """Write a file of this user only as a whole, so that a reader never sees a part of it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, json.dumps(value, indent=1), 0o600)


def timestamp(seconds: float | None) -> str | None:
    """Return a time as Azure writes it."""
    return None if seconds is None else datetime.fromtimestamp(seconds, timezone.utc).isoformat()


class LocalTransport(contextlib.nullcontext[None]):
    """The transport of a client. It is used from several threads."""

    def __init__(self, service: LocalService) -> None:
        super().__init__()
        self._service = service

    def open(self) -> None:
        return None

    close = open

    def sleep(self, seconds: float) -> None:
        time.sleep(min(seconds, _LONGEST_WAIT))

    def send(self, request: Any, **_: Any) -> Any:
        try:
            answer = self._answer(request)
        except Refusal as refusal:
            error: dict[str, Any] = {"code": refusal.code, "message": str(refusal), "details": []}
            answer = Answer({"error": error}, refusal.status)
        text = answer.body if isinstance(answer.body, str) else json.dumps(answer.body)
        content = b"" if answer.body is None else text.encode()
        return internals.rest_response(request, content, answer.status, answer.headers)

    def _answer(self, request: Any) -> Answer:
        address = urlsplit(request.url)
        service, match = self._service, _PATH.fullmatch(unquote(address.path))
        content = getattr(request, "content", None) or getattr(request, "body", None)
        if match is None:
            scope, path = "", f"/{(address.hostname or '').partition('.')[0]}{unquote(address.path)}"
        elif match["holder"].lower() == "registries":
            scope, path = f"azureml://registries/{match['name']}", match["path"] or ""
            service = service.of_registry(match["name"])
        else:
            api = match["api"].strip("/").partition("/")[0]
            scope, path = match["scope"], f"{api and f'/{api}'}{match['path'] or ''}"
        query = dict(parse_qsl(address.query))
        asked = Request(request.method, scope, path, query, json.loads(content) if content else None, request.headers)
        for method, pattern, handler in _ROUTES:
            if method == request.method and (found := pattern.fullmatch(path)):
                return handler(service, asked, **found.groupdict())
        raise InputError(_without_meaning(asked))


_ADVICE = {
    "onlineEndpoints": "start the model's server yourself, or use MLClient",
    "serverlessEndpoints": "use MLClient",
    "connections": "set the values of the connection as environment variables, or use MLClient",
}


def _without_meaning(request: Request) -> Problem:
    path = re.sub("^/(mferp|management/.*)(?=/)", "", request.path)
    kind = next(filter(None, path.split("/")), "workspaces")
    name = re.sub(r"(?<!^)([A-Z])", lambda match: f"_{match[1].lower()}", kind)
    found = f"{request.method} {path or '/'} is not available on this machine"
    expected = "jobs, assets, schedules, batch endpoints, compute, datastores, or workspaces.get"
    return Problem(f"LocalClient, {name}", found, expected, _ADVICE.get(kind, "remove it, or use MLClient"))
