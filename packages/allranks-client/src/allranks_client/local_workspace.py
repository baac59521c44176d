"""The workspace of `LocalClient`, its compute and its registries: this machine, under any name."""

import os
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from allranks.errors import InputError, Problem
from allranks.plan.assets import asset_id
from allranks_client.assets import upload_target
from allranks_client.emulation import resource
from allranks_client.local_assets import KINDS, LocalAssets, path_of
from allranks_client.local_service import LocalService, route
from allranks_client.messages import Answer, Request, not_found
from allranks_client.routing import API, MANAGEMENT, REGISTRY_HOST
from allranks_client.storage import LocalContainer

_THIS_MACHINE = "this-machine"
LOCATION = "local"
NO_SUBSCRIPTION = "00000000-0000-0000-0000-000000000000"


def _workspace(service: LocalService, scope: str) -> dict[str, Any]:
    name = scope.rpartition("/")[2]
    properties = {"friendlyName": name, "description": "", "provisioningState": "Succeeded"}
    properties |= {"discoveryUrl": f"https://{API}/discovery", "mlFlowTrackingUri": service.workspace.tracking_uri}
    properties["workspaceId"] = service.account
    return resource(scope, "", properties, location=LOCATION, kind="Default", tags={})


@route(MANAGEMENT, "GET", "{workspace}")
def get_workspace(service: LocalService, request: Request) -> Answer:
    """Return the workspace folder as a workspace with the requested name."""
    return Answer.of(_workspace(service, request.scope))


@route(MANAGEMENT, "GET", "{owner:path}/workspaces")
def list_workspaces(service: LocalService, request: Request, owner: str) -> Answer:
    return service.page(request, [_workspace(service, f"{owner}/workspaces/{LOCATION}")])


@route(API, "GET", "/discovery")
def discover(service: LocalService, request: Request) -> Answer:
    return Answer.of(dict.fromkeys(("api", "history", "experimentation", "modelmanagement"), f"https://{API}"))


@route(MANAGEMENT, "PUT", "{workspace}/datastores/{name}")
def put_datastore(service: LocalService, request: Request, name: str) -> Answer:
    found, expected = "this machine does not read Azure's storage", "a folder with the datastore's files"
    fix = f"copy the files that are needed, and add to allranks.yaml:\ndatastores:\n  {name}: path/to/folder"
    raise InputError(Problem(f"LocalClient, datastores.create_or_update, {name}", found, expected, fix))


def _compute(request: Request, name: str) -> dict[str, Any]:
    scale = {"maxNodeCount": os.cpu_count(), "minNodeCount": 0, "nodeIdleTimeBeforeScaleDown": "PT2M"}
    cluster = {"vmSize": _THIS_MACHINE, "vmPriority": "Dedicated", "scaleSettings": scale, "osType": "Linux"}
    properties = {"computeType": "AmlCompute", "provisioningState": "Succeeded", "properties": cluster}
    return resource(request.scope, f"/computes/{name}", properties, location=LOCATION)


@route(MANAGEMENT, "GET", "{workspace}/computes")
def list_computes(service: LocalService, request: Request) -> Answer:
    return service.page(request, [_compute(request, _THIS_MACHINE)])


@route(MANAGEMENT, "GET", "{workspace}/computes/{name}")
@route(MANAGEMENT, "PUT", "{workspace}/computes/{name}")
def get_compute(service: LocalService, request: Request, name: str) -> Answer:
    """Return this machine, for any name: steps run here whatever compute they name."""
    return Answer.of(_compute(request, name))


@route(MANAGEMENT, "DELETE", "{workspace}/computes/{name}")
@route(MANAGEMENT, "POST", *(f"{{workspace}}/computes/{{name}}/{action}" for action in ("start", "stop", "restart")))
def change_compute(service: LocalService, request: Request, name: str) -> Answer:
    """Change nothing: this machine cannot be changed."""
    place = f"https://{MANAGEMENT}{request.scope}/computes/{name}?api-version=1"
    return Answer(202, headers={"Location": place})


@route(API, "GET", "/registrymanagement/v1.0/registries/{name}/discovery")
def discover_registry(service: LocalService, request: Request, name: str) -> Answer:
    provider = f"https://{REGISTRY_HOST}/"
    owner = {"subscriptionId": NO_SUBSCRIPTION, "resourceGroup": LOCATION}
    return Answer.of({"registryName": name, "primaryRegionResourceProviderUri": provider, **owner})


_REGISTRY = "/mferp/managementfrontend{registry}"
_COLLECTIONS = {kind: collection for collection, kind in KINDS.items()}


@route(REGISTRY_HOST, "POST", _REGISTRY + "/datarefs/{name}/versions/{version}")
def get_files(service: LocalService, request: Request, name: str, version: str) -> Answer:
    container = urlsplit(request.json["blobUri"]).path.split("/")[1]
    return Answer.of(upload_target(service, container))


@route(REGISTRY_HOST, "POST", _REGISTRY + "/import")
def import_asset(service: LocalService, request: Request) -> Answer:
    """Copy a version of the workspace, and its files, to the registry."""
    asked = request.json["properties"]
    source = asset_id.parse(asked["sourceAssetId"], "")
    kind, name, version = _COLLECTIONS[source.kind], asked["destinationName"], asked["destinationVersion"]
    of_workspace = replace(service, workspace=service.home, registry="")
    properties = dict(LocalAssets(of_workspace, request).get(kind, source.name, source.version)["properties"])
    for key in {"dataUri", "modelUri"} & properties.keys():
        if (path := path_of(of_workspace, kind, Path(), properties)) is None:
            raise not_found(f"The content of {source}")
        container = f"{kind}-{uuid.uuid4()}"
        place = LocalContainer(service.workspace, container).upload(str(path), name, version)["remote path"]
        properties[key] = f"https://{service.account}.blob.core.windows.net/{container}/{place}"
    service.assets_of(request).put(kind, name, version, properties)
    return Answer()
