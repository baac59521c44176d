"""The workspace and the registry, and where their services are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from allranks_client.emulation import resource
from allranks_client.messages import Answer, Refusal, Request
from fake.names import (
    ACCOUNT,
    API,
    GROUP,
    GROUP_PATH,
    LOCATION,
    MANAGEMENT,
    REGISTRY,
    REGISTRY_HOST,
    REGISTRY_PATH,
    SUBSCRIPTION,
    WORKSPACE,
)
from fake.names import WORKSPACE_PATH as PATH
from fake.routing import route

if TYPE_CHECKING:
    from fake.service import FakeAzure

DATASTORES = {"workspaceblobstore": "azureml-blobstore", "workspaceartifactstore": "azureml"}
"""Datastores with their containers."""


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
    return resource(PATH, "", properties, **more, identity={"type": "SystemAssigned"})


@route(MANAGEMENT, "GET", "{workspace}")
def get_workspace(azure: FakeAzure, request: Request) -> Answer:
    return Answer.of(_workspace())


@route(MANAGEMENT, "GET", "{provider}/workspaces")
def list_workspaces(azure: FakeAzure, request: Request) -> Answer:
    return azure.page(request, [_workspace()])


@route(API, "GET", "/discovery", signed=False)
def discover(azure: FakeAzure, request: Request) -> Answer:
    # The hosts of the single services are others, which no client asks.
    return Answer.of({"api": f"https://{API}", "history": f"https://{LOCATION}.experiments.azureml.net"})


@route(API, "GET", "/registrymanagement/v1.0/registries/{name}/discovery")
def discover_registry(azure: FakeAzure, request: Request, name: str) -> Answer:
    if name != REGISTRY:
        raise Refusal(404, "UserError", f"Registry {name} was not found.")
    return Answer.of(
        {
            "registryName": REGISTRY,
            "primaryRegionResourceProviderUri": f"https://{REGISTRY_HOST}/",
            "resourceGroup": GROUP,
            "subscriptionId": SUBSCRIPTION,
        }
    )


@route(MANAGEMENT, "GET", "{registry}")
def get_registry(azure: FakeAzure, request: Request) -> Answer:
    properties = {"publicNetworkAccess": "Enabled", "mlFlowRegistryUri": None, "intellectualPropertyPublisher": None}
    return Answer.of(resource(REGISTRY_PATH, "", properties, location=LOCATION))
