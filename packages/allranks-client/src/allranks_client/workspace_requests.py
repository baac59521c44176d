"""The workspace itself, its compute and its datastores: this machine, under any name."""

from __future__ import annotations

import base64
import os
from dataclasses import replace
from typing import Any

from allranks.errors import InputError, Problem
from allranks.history import datastores
from allranks_client.service import Answer, LocalService, Refusal, Request, resource, route

_THIS_MACHINE = "this-machine"
LOCATION = "local"
NO_SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"


@route("GET", "")
def get_workspace(service: LocalService, request: Request) -> Answer:
    """Return the workspace folder as a workspace of the name that is asked for."""
    discovery = f"https://{service.account}.api.azureml.ms/discovery"
    properties = {"friendlyName": request.workspace_name, "description": "", "provisioningState": "Succeeded"}
    properties |= {"discoveryUrl": discovery, "mlFlowTrackingUri": service.workspace.tracking_uri}
    properties["workspaceId"] = service.account
    return Answer(resource(request, "", properties, location=LOCATION, kind="Default", tags={}))


@route("GET", "/management/{scope:.*}/workspaces")
def list_workspaces(service: LocalService, request: Request, scope: str) -> Answer:
    asked = replace(request, scope=f"/{scope}/workspaces/{LOCATION}")
    return Answer({"value": [get_workspace(service, asked).body]})


@route("GET", "/{account}/discovery")
def discover(service: LocalService, request: Request, account: str) -> Answer:  # noqa: ARG001
    names = ("api", "history", "experimentation", "modelmanagement")
    return Answer(dict.fromkeys(names, f"https://{account}.api.azureml.ms"))


@route("GET", "/{region}/registrymanagement/v1.0/registries/{name}/discovery")
def discover_registry(service: LocalService, request: Request, region: str, name: str) -> Answer:  # noqa: ARG001
    provider = f"https://{service.account}.api.azureml.ms/"
    owner = {"subscriptionId": NO_SUBSCRIPTION, "resourceGroup": LOCATION}
    return Answer({"registryName": name, "primaryRegionResourceProviderUri": provider, **owner})


def _datastore(service: LocalService, request: Request, name: str) -> dict[str, Any]:
    if name not in datastores.NAMES:
        raise Refusal(404, f"Could not find datastore with name {name}.")
    properties: dict[str, Any] = {"datastoreType": "AzureBlob", "accountName": service.account, "containerName": name}
    properties |= {"endpoint": "core.windows.net", "protocol": "https", "tags": {}, "properties": {}}
    properties |= {"isDefault": name == datastores.BLOBS, "credentials": {"credentialsType": "AccountKey"}}
    return resource(request, f"/datastores/{name}", properties)


@route("GET", "/datastores")
def list_datastores(service: LocalService, request: Request) -> Answer:
    found = [_datastore(service, request, name) for name in datastores.NAMES]
    if request.query.get("isDefault", "").lower() == "true":
        found = [body for body in found if body["properties"]["isDefault"]]
    return Answer({"value": found})


@route("GET", "/datastores/{name}")
def get_datastore(service: LocalService, request: Request, name: str) -> Answer:
    return Answer(_datastore(service, request, name))


@route("PUT", "/datastores/{name}")
def put_datastore(service: LocalService, request: Request, name: str) -> Answer:  # noqa: ARG001
    found, expected = "this machine does not read Azure's storage", "a folder with the datastore's files"
    fix = f"copy the files that are needed, and add to allranks.yaml:\ndatastores:\n  {name}: path/to/folder"
    raise InputError(Problem(f"LocalClient, datastores.create_or_update, {name}", found, expected, fix))


@route("POST", "/datastores/{name}/listSecrets")
def list_secrets(service: LocalService, request: Request, name: str) -> Answer:
    _datastore(service, request, name)
    return Answer({"secretsType": "AccountKey", "key": base64.b64encode(b"local").decode()})


def _compute(request: Request, name: str) -> dict[str, Any]:
    scale = {"maxNodeCount": os.cpu_count(), "minNodeCount": 0, "nodeIdleTimeBeforeScaleDown": "PT2M"}
    cluster = {"vmSize": _THIS_MACHINE, "vmPriority": "Dedicated", "scaleSettings": scale, "osType": "Linux"}
    properties = {"computeType": "AmlCompute", "provisioningState": "Succeeded", "properties": cluster}
    return resource(request, f"/computes/{name}", properties, location=LOCATION)


@route("GET", "/computes")
def list_computes(service: LocalService, request: Request) -> Answer:  # noqa: ARG001
    return Answer({"value": [_compute(request, _THIS_MACHINE)]})


@route("GET", "/computes/{name}")
@route("PUT", "/computes/{name}")
def get_compute(service: LocalService, request: Request, name: str) -> Answer:  # noqa: ARG001
    """Return this machine, for any name: steps run here whatever compute they name."""
    return Answer(_compute(request, name))


@route("DELETE", "/computes/{name}")
@route("POST", "/computes/{name}/{action:start|stop|restart}")
def change_compute(service: LocalService, request: Request, name: str, action: str = "") -> Answer:  # noqa: ARG001
    """Change nothing: this machine stays."""
    place = f"https://management.azure.com{request.scope}/computes/{name}?api-version=1"
    return Answer(None, 202, {"Location": place})
