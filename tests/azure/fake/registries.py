"""The registry: how a client finds it, and how it uploads to it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from fake import arm
from fake.messages import Answer, Refusal, Request
from fake.names import API, BLOBS, GROUP, LOCATION, MANAGEMENT, REGISTRY, REGISTRY_HOST, REGISTRY_PATH, SUBSCRIPTION
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
    return Answer.of({**arm.resource(REGISTRY_PATH, REGISTRY, "", properties), "location": LOCATION})


@route(REGISTRY_HOST, "PUT", "/mferp/managementfrontend{registry}/tempdatarefs/{name}/versions/{version}")
def temporary_data_reference(azure: FakeAzure, request: Request, name: str, version: str) -> Answer:
    """A place for what is to be uploaded. 409 where the version is there already."""
    kind = (request.json.get("assetId") or "").removeprefix(f"azureml://registries/{REGISTRY}/").partition("/")[0]
    if (name, version) in azure.registry.of(kind):
        raise Refusal(409, "Conflict", f"{kind} {name}:{version} already exists in registry {REGISTRY}.")
    container = f"{REGISTRY}-{uuid.uuid4()}"
    uri = f"https://{BLOBS}/{container}"
    credential = {
        "credentialType": "SAS",
        "sasUri": f"{uri}?{azure.blobs.signatures.sas(container, permissions='rwlac')}",
    }
    reference = {"blobUri": uri, "storageAccountArmId": "", "credential": credential}
    return Answer.of({"blobReferenceForConsumption": reference, "temporaryDataReferenceId": str(uuid.uuid4())})
