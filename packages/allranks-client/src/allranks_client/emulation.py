"""What both emulated services have in common: `LocalClient`'s, on a workspace folder, and the fake of the tests."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any, ClassVar
from urllib.parse import urlencode

from allranks_client.messages import Answer, Refusal, Request
from allranks_client.routing import MANAGEMENT, Routes

SHARED = Routes()
"""The functions that answer in both services."""


class Service:
    """What these functions need of a service.

    page_size: maximum number of items in a page of a list
    account:   the name of the storage account
    containers: the containers of the datastores, by name
    access:    the type of the datastores' credentials: AccountKey, Sas or None
    """

    page_size = 100
    containers: ClassVar[Mapping[str, str]]
    access = "AccountKey"

    @property
    def account(self) -> str:
        raise NotImplementedError

    def assets_of(self, request: Request) -> Any:
        """Return the assets of the workspace or registry that a request names."""
        raise NotImplementedError

    def signature(self, container: str = "") -> str:
        """Return a SAS for a container, or for the account."""
        raise NotImplementedError

    def account_key(self) -> str:
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
    """Return a time, by default now, as Azure writes it: with seven digits of a second."""
    moment = datetime.fromtimestamp(time.time() if seconds is None else seconds, timezone.utc)
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
    before: the resource that this one replaces, which says when it was created
    more:   what else the resource has

    The service does not tell who has changed a job or data.
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


def created(request: Request, body: dict[str, Any]) -> Answer:
    """Return 201, with the address of the request, whatever id the body has."""
    return Answer.of(body, 201, Location=f"https://{request.host}{request.target}")


def viewed(request: Request, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the items with those that are archived, without them, or only them: ``listViewType``."""
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
        "credentials": {"credentialsType": service.access},
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
    """Return the account's key, or a SAS."""
    _datastore(service, request, name)
    if service.access == "AccountKey":
        return Answer.of({"secretsType": "AccountKey", "key": service.account_key()})
    return Answer.of({"secretsType": "Sas", "sasToken": service.signature()})
