"""The common parts of both emulated services: that of `LocalClient`, on a workspace folder, and that of the tests."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar
from urllib.parse import urlencode

from allranks_client.messages import Answer, Refusal, Request
from allranks_client.routing import MANAGEMENT, Routes

SHARED = Routes()
"""The functions that answer in both services."""


@dataclass
class Job:
    """A job, or a step of a pipeline, which is a job of its own. Times are seconds since the epoch, or None.

    properties: the properties as sent; None for a step, of which the management API returns nothing
    parent:     the job of the pipeline or sweep that contains it; "" for none
    root:       the submitted job of a step; "" for a submitted job
    children:   the names of its steps
    error:      the reason of its failure
    outputs:    name -> (type, datastore, path)
    run_properties: properties of the run besides those that were sent
    """

    name: str
    properties: dict[str, Any] | None
    status: str = "Queued"
    display_name: str = ""
    parent: str = ""
    root: str = ""
    children: list[str] = field(default_factory=list)
    created: float = field(default_factory=time.time)
    started: float | None = None
    ended: float | None = None
    error: str = ""
    archived: bool = False
    outputs: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    run_properties: dict[str, str] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        return str((self.properties or {}).get("jobType", "Command"))


class Service:
    """The interface of a service to the functions that answer its requests.

    page_size: maximum number of items in a page of a list
    account:   the name of the storage account
    containers: the containers of the datastores, by name
    """

    page_size = 100
    containers: ClassVar[Mapping[str, str]]

    @property
    def account(self) -> str:
        raise NotImplementedError

    def assets_of(self, request: Request) -> Any:
        """Return the assets of the workspace or registry that a request names."""
        raise NotImplementedError

    def signature(self) -> str:
        """Return a SAS."""
        raise NotImplementedError

    def account_key(self) -> str:
        raise NotImplementedError

    def submitted_jobs(self) -> Iterable[Job]:
        """Return the jobs, the newest first, without the steps of pipelines."""
        raise NotImplementedError

    def has_job(self, name: str) -> bool:
        raise NotImplementedError

    def job(self, name: str) -> Job:
        """Return a job, or a step of one. Raise Refusal if there is none."""
        raise NotImplementedError

    def start_job(self, name: str, properties: dict[str, Any]) -> Job:
        """Start a job with the properties that were sent. Raise Refusal or InputError if it cannot run."""
        raise NotImplementedError

    def save_job(self, job: Job) -> None:
        """Save the changed description of a job."""
        raise NotImplementedError

    def job_pages(self, job: Job) -> dict[str, str | None]:
        """Return the addresses of a job's metrics and of its page: Tracking and Studio."""
        raise NotImplementedError

    def logs(self, job: Job) -> dict[str, str]:
        """Return the addresses of the logs of a job by their names."""
        raise NotImplementedError

    def page(self, request: Request, items: list[dict[str, Any]]) -> Answer:
        """Return a page of a list, with a link to the next one if there is one."""
        start = int(request.query.get("$skip", 0))
        data: dict[str, Any] = {"value": items[start : start + self.page_size]}
        if start + self.page_size < len(items):
            query = {**request.query, "$skip": str(start + self.page_size)}
            data["nextLink"] = f"https://{request.host}{request.path}?{urlencode(query)}"
        return Answer.of(data)


def timestamp(seconds: float | None = None) -> str:
    """Return a time, by default now, in Azure's format: with seven digits of a second."""
    moment = datetime.fromtimestamp(time.time() if seconds is None else seconds, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S.%f}1+00:00"


def resource(
    scope: str,
    path: str,
    properties: Any,
    before: dict[str, Any] | None = None,
    *,
    created: float | None = None,
    created_by: str = "User",
    **more: Any,
) -> dict[str, Any]:
    """Return a resource of Azure Resource Manager.

    path:   below the workspace or registry: the kind and the name, such as ``/components/train/versions/1``
    before: the resource that this one replaces, which contains the time of its creation
    more:   further keys of the resource

    The service does not report who has changed a job or data.
    """
    kind = "/".join(path.split("/")[1::2])
    data = {"createdAt": timestamp(created), "createdBy": "this machine", "createdByType": created_by}
    changed = {"lastModifiedAt": timestamp(), "lastModifiedBy": "this machine", "lastModifiedByType": created_by}
    if kind == "jobs":
        changed = {}
    elif kind == "data/versions":
        changed = {"lastModifiedAt": changed["lastModifiedAt"]}
    if before:
        data["createdAt"] = before["systemData"]["createdAt"]
    identity = f"{scope}{path}"
    return {
        "id": identity,
        "name": identity.rpartition("/")[2],
        "type": f"Microsoft.MachineLearningServices/workspaces/{kind}".rstrip("/"),
        "properties": properties,
        "systemData": {**data, **changed},
        **more,
    }


def long_datastores(scope: str) -> str:
    """Return the long form of ``azureml://datastores/``, as the service returns it."""
    scope = scope.replace("/providers/Microsoft.MachineLearningServices", "")
    return f"azureml:/{scope.replace('/resourceGroups/', '/resourcegroups/')}/datastores/"


def created(request: Request, body: dict[str, Any]) -> Answer:
    """Return 201, with the address of the request, independent of the id in the body."""
    return Answer.of(body, 201, Location=f"https://{request.host}{request.target}")


def select(request: Request, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items with, without, or only archived ones, depending on ``listViewType``."""
    view = request.query.get("listViewType", "ActiveOnly")
    if view == "All":
        return items
    return [item for item in items if bool(item["properties"].get("isArchived")) == (view == "ArchivedOnly")]


def _datastore(service: Service, request: Request, name: str) -> dict[str, Any]:
    if name not in service.containers:
        raise Refusal(404, "UserError", f"Could not find datastore with name {name}.")
    properties = {
        "datastoreType": "AzureBlob",
        "accountName": service.account,
        "containerName": service.containers[name],
        "endpoint": "core.windows.net",
        "protocol": "https",
        "isDefault": name == "workspaceblobstore",
        "credentials": {"credentialsType": "AccountKey"},
        "serviceDataAccessAuthIdentity": "WorkspaceSystemAssignedIdentity",
        **dict.fromkeys(("description", "tags", "properties")),
    }
    return resource(request.scope, f"/datastores/{name}", properties, created_by="Application")


@SHARED.route(MANAGEMENT, "GET", "{workspace}/datastores")
def list_datastores(service: Service, request: Request) -> Answer:
    found = [_datastore(service, request, name) for name in service.containers]
    if request.query.get("isDefault", "").lower() == "true":
        found = [body for body in found if body["properties"]["isDefault"]]
    return service.page(request, found)


@SHARED.route(MANAGEMENT, "GET", "{workspace}/datastores/{name}")
def get_datastore(service: Service, request: Request, name: str) -> Answer:
    return Answer.of(_datastore(service, request, name))


@SHARED.route(MANAGEMENT, "POST", "{workspace}/datastores/{name}/listSecrets")
def list_secrets(service: Service, request: Request, name: str) -> Answer:
    _datastore(service, request, name)
    return Answer.of({"secretsType": "AccountKey", "key": service.account_key()})
