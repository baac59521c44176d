"""The registry: how a client finds it, and how it uploads to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allranks_client.emulation import resource
from allranks_client.messages import Answer, Refusal, Request
from fake.names import API, GROUP, LOCATION, MANAGEMENT, REGISTRY, REGISTRY_HOST, REGISTRY_PATH, SUBSCRIPTION
from fake.routing import route

if TYPE_CHECKING:
    from fake.service import FakeAzure


@route(API, "GET", "/registrymanagement/v1.0/registries/{name}/discovery")
def discover(azure: FakeAzure, request: Request, name: str) -> Answer:
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
