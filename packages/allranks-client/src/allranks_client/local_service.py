"""The service of `LocalClient`: an azure-core transport that answers Azure ML's requests from a workspace folder.
Nothing is sent.
"""

from __future__ import annotations

import base64
import contextlib
import re
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from allranks.errors import InputError, Problem
from allranks.history import datastores, stored
from allranks.plan.graph import Plan
from allranks.sdk import internals
from allranks_client import local_jobs
from allranks_client.assets import Assets
from allranks_client.emulation import SHARED, Job, Service
from allranks_client.local_assets import LocalAssets
from allranks_client.messages import SCOPE, Answer, Refusal, Request
from allranks_client.routing import API, MANAGEMENT, REGISTRY_HOST, Routes
from allranks_client.storage import LocalFolder

_LONGEST_WAIT = 0.05
"""Maximum seconds between two requests for a long-running operation."""

STORAGE = "blob.core.windows.net"
"""Placeholder for the host of each storage account."""

ROUTES = Routes(SHARED)
route = ROUTES.route


@dataclass
class LocalService(LocalFolder, Service):
    """The service that the functions which answer requests use.

    submit:   starts the run of a job from its name, its plan and options of the run; returns the run's id
    new_jobs: names of submitted jobs whose state has not been requested from run history yet
    """

    submit: Callable[..., str]
    new_jobs: set[str] = field(default_factory=set)

    page_size = sys.maxsize
    containers: ClassVar = dict(zip(datastores.NAMES, datastores.NAMES, strict=True))

    def of_registry(self, name: str) -> LocalService:
        return replace(self, workspace=self.home.registry(name), registry=name)

    def assets_of(self, request: Request) -> Assets:
        return LocalAssets(self, request)

    def submitted_jobs(self) -> Iterator[Job]:
        return (local_jobs.job_of(record) for record in stored.runs(self.workspace) if record.submitted is None)

    def has_job(self, name: str) -> bool:
        found = datastores.find(self.workspace, name)
        return found is not None and found[0].submitted is None

    def job(self, name: str) -> Job:
        return local_jobs.job_of(*local_jobs.find(self.workspace, name))

    def start_job(self, name: str, properties: dict[str, Any] | None, plan: Plan | None = None, **options: Any) -> Job:
        """Start a job.

        properties: None for those in its record
        plan:       by default that of the job that this thread submits
        options:    options of the run, besides the client's
        """
        record = stored.run(self.workspace, self.submit(name, plan, **options))
        if properties:
            local_jobs.save(record, properties)
        self.new_jobs.add(name)
        return local_jobs.job_of(record)

    def save_job(self, job: Job) -> None:
        sent = job.properties or {}
        own = {**(sent.get("properties") or {}), **job.run_properties}
        texts = {"displayName": job.display_name, "isArchived": job.archived, "tags": job.tags, "properties": own}
        local_jobs.save(local_jobs.find(self.workspace, job.name)[0], {**sent, **texts})

    def job_pages(self, job: Job) -> dict[str, str | None]:
        page = local_jobs.find(self.workspace, job.name)[0].page
        return {"Tracking": self.workspace.tracking_uri, "Studio": Path(page).as_uri() if page else None}

    def logs(self, job: Job) -> dict[str, str]:
        place = f"https://{self.account}.{STORAGE}/{datastores.ARTIFACTS}/ExperimentRun/dcid.{quote(job.name)}"
        return {log: f"{place}/{quote(log)}" for log in local_jobs.logs(self.workspace, job.name)}

    def signature(self) -> str:
        return "sig=local"

    def account_key(self) -> str:
        return base64.b64encode(b"local").decode()


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
            answer = refusal.answer(MANAGEMENT)
        content = answer.body.read_bytes() if isinstance(answer.body, Path) else answer.body
        return internals.rest_response(request, content, answer.status, answer.headers)

    def _answer(self, request: Any) -> Answer:
        asked = _read(request)
        service = self._service.of_registry(asked.registry) if asked.registry else self._service
        if found := ROUTES.find(asked):
            place, parts = found
            return place.handler(service, asked, **parts)
        raise InputError(_without_meaning(asked))


def _read(request: Any) -> Request:
    """Return a request of the SDK, with the host and path under which the routes have its function."""
    address = urlsplit(request.url)
    host, path = address.hostname or "", unquote(address.path)
    scope = SCOPE.search(path)
    if host.endswith(STORAGE):
        host = STORAGE
    elif scope is None:
        host = host if host == MANAGEMENT else API
    elif scope["kind"].lower() == "registries":
        host, path = REGISTRY_HOST, f"/mferp/managementfrontend{scope[0]}"
    elif path[: scope.start()].strip("/").partition("/")[0] in ("", "mferp"):
        host, path = MANAGEMENT, scope[0]
    content = getattr(request, "content", None) or getattr(request, "body", None) or b""
    body = content.encode() if isinstance(content, str) else content
    headers = {name.lower(): value for name, value in request.headers.items()}
    target = f"{address.path}?{address.query}"
    return Request(request.method, host, path, dict(parse_qsl(address.query)), headers, body, target)


_ADVICE = {
    "onlineEndpoints": "start the model's server yourself, or use MLClient",
    "serverlessEndpoints": "use MLClient",
    "connections": "set the values of the connection as environment variables, or use MLClient",
}


def _without_meaning(request: Request) -> Problem:
    path = request.below if request.scope else f"/{request.path.rpartition('/')[2]}"
    kind = next(filter(None, path.split("/")), "workspaces")
    name = re.sub(r"(?<!^)([A-Z])", lambda match: f"_{match[1].lower()}", kind)
    found = f"{request.method} {path or '/'} is not available on this machine"
    expected = "jobs, assets, schedules, batch endpoints, compute, datastores, or workspaces.get"
    return Problem(f"LocalClient, {name}", found, expected, _ADVICE.get(kind, "remove it, or use MLClient"))
