"""The workspace, where its other services are, and its datastores."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from fake import arm
from fake.messages import Answer, Refusal, Request
from fake.names import ACCOUNT, API, GROUP_PATH, LOCATION, MANAGEMENT, WORKSPACE, in_workspace
from fake.names import WORKSPACE_PATH as PATH
from fake.routing import route

if TYPE_CHECKING:
    from fake.service import FakeAzure

DATASTORES = {"workspaceblobstore": "azureml-blobstore", "workspaceartifactstore": "azureml"}
"""Datastores with their containers."""

_CREDENTIALS = {"key": "AccountKey", "sas": "Sas", "identity": "None"}


_DATASTORE_PATH = re.compile(r"azureml://(?:subscriptions/.*/)?datastores/([^/]+)/(?:paths/)?(.*)", re.IGNORECASE)


def find_datastore_path(uri: str) -> tuple[str, str] | None:
    """The datastore and the path in it that a URI names, or None for any other URI."""
    match = _DATASTORE_PATH.fullmatch(uri)
    return (match[1], match[2]) if match else None


def _workspace() -> dict[str, Any]:
    storage = f"{GROUP_PATH}/providers/Microsoft.Storage/storageAccounts/{ACCOUNT}"
    properties = {
        "friendlyName": WORKSPACE,
        "description": "",
        "hbiWorkspace": False,
        "v1LegacyMode": False,
        "workspaceId": "00000000-aaaa-bbbb-cccc-000000000000",
        "discoveryUrl": f"https://{API}/discovery",
        "mlFlowTrackingUri": f"azureml://{API}/mlflow/v1.0{PATH}",
        "storageAccount": storage,
        "provisioningState": "Succeeded",
        "publicNetworkAccess": "Enabled",
    }
    more = {"location": LOCATION, "kind": "Default", "tags": {}, "sku": {"name": "Basic", "tier": "Basic"}}
    return {**arm.resource(PATH, WORKSPACE, "", properties), **more, "identity": {"type": "SystemAssigned"}}


@route(MANAGEMENT, "GET", "{workspace}")
def get_workspace(azure: FakeAzure, request: Request) -> Answer:
    return Answer.of(_workspace())


@route(MANAGEMENT, "GET", "{provider}/workspaces")
def list_workspaces(azure: FakeAzure, request: Request) -> Answer:
    return arm.page(azure, request, [_workspace()])


@route(API, "GET", "/discovery", signed=False)
def discover(azure: FakeAzure, request: Request) -> Answer:
    # The hosts of the single services are others, which no client asks.
    return Answer.of({"api": f"https://{API}", "history": f"https://{LOCATION}.experiments.azureml.net"})


def _datastore(azure: FakeAzure, name: str) -> dict[str, Any]:
    if name not in DATASTORES:
        raise Refusal(404, "UserError", f"Could not find datastore with name {name}.")
    properties = {
        "datastoreType": "AzureBlob",
        "accountName": ACCOUNT,
        "containerName": DATASTORES[name],
        "endpoint": "core.windows.net",
        "protocol": "https",
        "isDefault": name == "workspaceblobstore",
        "credentials": {"credentialsType": _CREDENTIALS[azure.storage_access]},
        "serviceDataAccessAuthIdentity": "WorkspaceSystemAssignedIdentity",
        **dict.fromkeys(("description", "tags", "properties")),
    }
    return arm.resource(in_workspace("datastores", name), name, "datastores", properties, created_by="Application")


@route(MANAGEMENT, "GET", "{workspace}/datastores")
def list_datastores(azure: FakeAzure, request: Request) -> Answer:
    found = [_datastore(azure, name) for name in DATASTORES]
    if request.query.get("isDefault", "").lower() == "true":
        found = [body for body in found if body["properties"]["isDefault"]]
    return arm.page(azure, request, found)


@route(MANAGEMENT, "GET", "{workspace}/datastores/{name}")
def get_datastore(azure: FakeAzure, request: Request, name: str) -> Answer:
    return Answer.of(_datastore(azure, name))


@route(MANAGEMENT, "POST", "{workspace}/datastores/{name}/listSecrets")
def list_secrets(azure: FakeAzure, request: Request, name: str) -> Answer:
    """The account's key, or a SAS."""
    _datastore(azure, name)
    if azure.storage_access == "key":
        return Answer.of({"secretsType": "AccountKey", "key": azure.blobs.key})
    return Answer.of({"secretsType": "Sas", "sasToken": azure.blobs.signatures.sas(permissions="rwlac")})
