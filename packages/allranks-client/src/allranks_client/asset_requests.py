"""Components, environments, data, models and code: versions in ``assets/`` of the workspace folder that never change.

Each version is a JSON file, the REST body that the client has sent. The store has the path of each on this machine, by
which pipelines find it.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

from allranks.history import assets as store_assets
from allranks.history import datastores, registered
from allranks.history.assets import RegisteredAsset
from allranks.history.store import Store
from allranks.plan.assets import asset_id
from allranks.plan.assets.asset_id import AssetId
from allranks.plan.assets.lookup import AssetLookup
from allranks.sdk import internals, specs
from allranks_client.service import (
    Answer,
    LocalService,
    Refusal,
    Request,
    not_found,
    resource,
    route,
    viewed,
    write_json,
)
from allranks_client.storage import LocalContainer

_KINDS = {
    "codes": asset_id.CODE,
    "components": asset_id.COMPONENT,
    "data": asset_id.DATA,
    "environments": asset_id.ENVIRONMENT,
    "models": asset_id.MODEL,
}
_COLLECTIONS = {kind: collection for collection, kind in _KINDS.items()}
_KIND = f"/{{kind:{'|'.join(_KINDS)}}}"
_CHANGEABLE = {"description", "tags", "properties", "isArchived", "autoDeleteSetting"}
_CHANGEABLE |= {"provisioningState", "flavors", "stage"}  # what the service adds
_CHANGEABLE_SPEC = {"description", "tags", "display_name", "_source"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,254}")
_ANONYMOUS = ("azureml_anonymous", "CliV2Anonymous")
_ARCHIVED = "archived"
"""The file that marks a name as archived."""


def _folder(service: LocalService, kind: str, name: str = "") -> Path:
    return service.workspace.root / "assets" / kind / name


def _check(kind: str, *names: str) -> None:
    if wrong := [name for name in names if not _NAME.fullmatch(name)]:
        allowed = "letters, digits, hyphens, underscores and dots"
        raise Refusal(400, f"The name or version '{wrong[0]}' of {kind} is invalid. It may have {allowed}.")


def _added(kind: str) -> dict[str, Any]:
    """Return what the service adds to a version."""
    state = {} if kind == "data" else {"provisioningState": "Succeeded"}
    more: dict[str, Any] = {"models": {"flavors": {}, "stage": "None"}, "environments": {"osType": "Linux"}}
    return {"isArchived": False, **state, **more.get(kind, {})}


def _versions(service: LocalService, request: Request, kind: str, name: str, version: str = "") -> list[dict[str, Any]]:
    """Return every version, the newest first; if there is none, the one that ``allranks.yaml`` has. Raise Refusal if it
    has none either."""
    _check(kind, name)
    bodies = {body["name"]: body for body in _stored(_folder(service, kind, name))}
    for asset in _registered(service, kind, name):
        if asset.version not in bodies:
            bodies[asset.version] = _of_file(request, kind, asset)
    if not bodies and (mapped := _mapped(service, kind, name, version)):
        bodies[mapped.version] = _of_file(request, kind, mapped)
    if not bodies:
        raise Refusal(404, f"{_KINDS[kind].capitalize()} {name} was not found.")
    found = sorted(bodies.values(), key=lambda body: str(body["systemData"]["createdAt"]), reverse=True)
    return [{**body, "id": f"{request.scope}/{kind}/{name}/versions/{body['name']}"} for body in found]


def _stored(folder: Path) -> Iterator[dict[str, Any]]:
    return (json.loads(file.read_text(encoding="utf-8")) for file in folder.glob("*.json"))


def _registered(service: LocalService, kind: str, name: str) -> Iterator[RegisteredAsset]:
    """Yield the versions that the store has, and the models that training code has registered in MLflow."""
    if service.workspace.database.exists():
        with Store(service.workspace.database) as store:
            yield from store_assets.versions(store.connection, _KINDS[kind], name)
    if kind == "models":
        model = AssetId(asset_id.MODEL, name)
        for place, version in enumerate(registered.find(service.workspace, model).versions):
            if path := registered.find(service.workspace, replace(model, version=version)).path:
                yield RegisteredAsset(asset_id.MODEL, name, version, path, -place)


def _mapped(service: LocalService, kind: str, name: str, version: str) -> RegisteredAsset | None:
    """Return the version of a component, data or a model that the ``allranks.yaml`` of the current folder has."""
    if kind not in ("components", "data", "models"):
        return None
    asset = AssetId(_KINDS[kind], name, version, registry=service.registry)
    where = f"LocalClient, {kind}.get"
    path = AssetLookup.of(Path.cwd(), None).find(str(asset), asset.kind, where, required=False)
    return RegisteredAsset(asset.kind, name, version or "1", path, 0.0) if path else None


def _of_file(request: Request, kind: str, asset: RegisteredAsset) -> dict[str, Any]:
    """Return the body of a version that no client has created: a run has registered it, or ``allranks.yaml`` has it."""
    properties: dict[str, Any] = {**_added(kind), "tags": {}, "properties": {}}
    if kind == "data":
        data_type = "uri_folder" if asset.path.is_dir() else "uri_file"
        properties |= {"dataType": data_type, "dataUri": str(asset.path)}
    elif kind == "models":
        model_type = "mlflow_model" if (asset.path / "MLmodel").exists() else "custom_model"
        properties |= {"modelType": model_type, "modelUri": str(asset.path)}
    elif kind == "components":
        components = specs.load(asset.path)
        component = next((each for each in components if each.name == asset.name), components[0])
        spec = {key: value for key, value in internals.as_dict(component).items() if key != "code"}
        properties["componentSpec"] = {**spec, "version": asset.version}
    path = f"/{kind}/{asset.name}/versions/{asset.version}"
    return resource(request, path, properties, max(asset.created, 0.0))


def _version(service: LocalService, request: Request, kind: str, name: str, version: str) -> dict[str, Any]:
    for body in _versions(service, request, kind, name, version):
        if body["name"] == version:
            return body
    raise Refusal(404, f"{_KINDS[kind].capitalize()} {name}:{version} was not found.")


def _container(service: LocalService, request: Request, kind: str, name: str) -> dict[str, Any]:
    versions = _versions(service, request, kind, name)
    numbers = [int(body["name"]) for body in versions if body["name"].isdecimal()]
    properties = {"latestVersion": versions[0]["name"], "nextVersion": str(max(numbers, default=0) + 1)}
    properties |= {"isArchived": (_folder(service, kind, name) / _ARCHIVED).exists(), "tags": {}, "properties": {}}
    properties["dataType"] = versions[0]["properties"].get("dataType")
    if kind == "components":
        properties |= {"latestVersion": None, "description": ""}
    return resource(request, f"/{kind}/{name}", properties)


@route("GET", _KIND)
def list_containers(service: LocalService, request: Request, kind: str) -> Answer:
    names = {folder.name for folder in _folder(service, kind).glob("*/")}
    if service.workspace.database.exists():
        with Store(service.workspace.database) as store:
            names |= set(store_assets.names(store.connection, _KINDS[kind]))
    if kind == "models":
        names |= set(registered.model_names(service.workspace))
    shown = sorted(name for name in names if not name.startswith(_ANONYMOUS))
    return viewed(request, [_container(service, request, kind, name) for name in shown])


@route("GET", _KIND + "/{name}")
def get_container(service: LocalService, request: Request, kind: str, name: str) -> Answer:
    return Answer(_container(service, request, kind, name))


@route("PUT", _KIND + "/{name}")
def put_container(service: LocalService, request: Request, kind: str, name: str) -> Answer:
    body = _container(service, request, kind, name)
    mark = _folder(service, kind, name) / _ARCHIVED
    if request.body["properties"].get("isArchived"):
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    else:
        mark.unlink(missing_ok=True)
    return Answer(body)


@route("GET", _KIND + "/{name}/versions")
def list_versions(service: LocalService, request: Request, kind: str, name: str) -> Answer:
    if content := request.query.get("hash"):
        # The SDK looks for code by its content, under any name.
        codes = (body for folder in _folder(service, kind).glob("*/") for body in _stored(folder))
        return Answer({"value": [body for body in codes if _hash(body["properties"]) == content]})
    try:
        versions = _versions(service, request, kind, name)
    except Refusal:
        if not service.registry:
            raise
        versions = []  # a registry has no containers
    found = viewed(request, versions).body["value"]
    if "asc" in request.query.get("$orderBy", request.query.get("orderBy", "")):
        found.reverse()
    top = request.query.get("$top", request.query.get("top"))
    return Answer({"value": found[: int(top)] if top else found})


@route("GET", _KIND + "/{name}/versions/{version}")
def get_version(service: LocalService, request: Request, kind: str, name: str, version: str) -> Answer:
    return Answer(_version(service, request, kind, name, version))


@route("PUT", _KIND + "/{name}/versions/{version}")
def put_version(service: LocalService, request: Request, kind: str, name: str, version: str) -> Answer:
    """Create a version, or change what describes it. Raise Refusal if its content would change."""
    properties = request.body.get("properties") or {}
    if kind == "data":
        properties["dataUri"] = str(properties.get("dataUri")).replace("azureml://datastores/", request.datastores)
    elif kind == "models":  # spelled as by the service
        properties["modelUri"] = str(properties.get("modelUri")).replace("/resourcegroups/", "/resourceGroups/")
    elif kind == "components":
        spec = properties["componentSpec"]
        inputs = {key: {"optional": False, **port} for key, port in (spec.get("inputs") or {}).items()}
        spec |= {"inputs": inputs, "version": spec.get("version") or version}
        if spec.get("type") == "command":
            spec.setdefault("resources", {"instance_count": 1})
    _check(kind, name, version)
    try:
        before = _version(service, request, kind, name, version)
    except Refusal:
        before = None
    if before and properties.get("isAnonymous"):
        return Answer(before)
    if before and _content(kind, before["properties"]) != _content(kind, properties):
        # azure-ai-ml creates the next version of an environment when it sees 409. That a component has another status
        # is seen in recordings of the service.
        status, code = (400, "UserError") if kind == "components" else (409, "ResourceExistsError")
        message = f"{_KINDS[kind].capitalize()} {name} with version {version} exists and cannot be changed."
        raise Refusal(status, f"{message} Use a different name or version.", code)
    earlier = before["properties"] if before else _added(kind)
    body = resource(request, f"/{kind}/{name}/versions/{version}", {**earlier, **properties})
    if before:
        body["systemData"]["createdAt"] = before["systemData"]["createdAt"]
    elif path := _path(service, kind, _folder(service, kind, name) / version, properties):
        service.workspace.make()
        with Store(service.workspace.database) as store:  # where pipelines find it
            store_assets.add(store.connection, RegisteredAsset(_KINDS[kind], name, version, path, time.time()))
    write_json(_folder(service, kind, name) / f"{version}.json", body)
    return Answer(body, 200 if before else 201)


@route("POST", "/codes/{name}/versions/{version}/startPendingUpload")
def start_upload(service: LocalService, request: Request, name: str, version: str) -> Answer:  # noqa: ARG001
    return _reference(f"https://{service.account}.blob.core.windows.net/code-{uuid.uuid4()}")


@route("PUT", "/tempdatarefs/{name}/versions/{version}")
def start_registry_upload(service: LocalService, request: Request, name: str, version: str) -> Answer:
    """Return where the files of a new version go in a registry. Raise Refusal if the version exists."""
    kind = _COLLECTIONS[asset_id.parse(request.body["assetId"], "").kind]
    if (_folder(service, kind, name) / f"{version}.json").exists():
        raise Refusal(409, f"{kind} {name}:{version} exists in registry {service.registry}.", "Conflict")
    return start_upload(service, request, name, version)


@route("POST", "/datarefs/{name}/versions/{version}")
def get_registry_files(service: LocalService, request: Request, name: str, version: str) -> Answer:  # noqa: ARG001
    address = urlsplit(request.body["blobUri"])
    return _reference(f"https://{address.netloc}/{address.path.split('/')[1]}")  # the container


def _reference(address: str) -> Answer:
    reference = {"blobUri": address, "credential": {"credentialType": "SAS", "sasUri": f"{address}?sig=local"}}
    return Answer({"pendingUploadType": "TemporaryBlobReference", "blobReferenceForConsumption": reference})


@route("POST", "/import")
def import_asset(service: LocalService, request: Request) -> Answer:
    """Copy a version of the workspace, and its files, to a registry."""
    asked = request.body["properties"]
    source = asset_id.parse(asked["sourceAssetId"], "")
    kind, name, version = _COLLECTIONS[source.kind], asked["destinationName"], asked["destinationVersion"]
    of_workspace = replace(service, workspace=service.home, registry="")
    properties = dict(_version(of_workspace, request, kind, source.name, source.version)["properties"])
    for key in {"dataUri", "modelUri"} & properties.keys():
        if (path := _path(of_workspace, kind, Path(), properties)) is None:
            raise not_found(f"The content of {source}")
        container = f"{kind}-{uuid.uuid4()}"
        place = LocalContainer(service.workspace, container).upload(str(path), name, version)["remote path"]
        properties[key] = f"https://{service.account}.blob.core.windows.net/{container}/{place}"
    put_version(service, replace(request, body={"properties": properties}), kind, name, version)
    return Answer(None)


def _hash(properties: dict[str, Any]) -> Any:
    return (properties.get("properties") or {}).get("hash_sha256")


def _content(kind: str, properties: dict[str, Any]) -> Any:
    """Return what may not change of a version."""
    if kind == "codes" and (digest := _hash(properties)):
        return digest
    fixed = {key: value for key, value in {**_added(kind), **properties}.items() if key not in _CHANGEABLE}
    if kind == "components":
        spec = fixed.get("componentSpec") or {}
        fixed["componentSpec"] = {key: value for key, value in spec.items() if key not in _CHANGEABLE_SPEC}
    return _without_empty(fixed)


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_empty(inner) for key, inner in value.items() if inner not in (None, {}, [], False)}
    return value


def _path(service: LocalService, kind: str, folder: Path, properties: dict[str, Any]) -> Path | None:
    """Return the path of a version: its files, or the YAML file that describes it, which is written into a folder. None
    if this machine does not have it."""
    if kind == "codes":
        return _uploaded(service, properties["codeUri"])
    if kind in ("data", "models"):
        uri = str(properties.get("dataUri") or properties.get("modelUri") or "")
        if uri.startswith(f"https://{service.account}."):
            return _uploaded(service, uri)
        if uri.startswith(("/", "file://")):
            path = Path(unquote(urlsplit(uri).path))
            return path if path.exists() else None
        try:
            return registered.find(service.home, asset_id.parse(uri, asset_id.DATA)).path
        except ValueError:
            return None
    write = _environment if kind == "environments" else _component
    spec = write(service, {"name": folder.parent.name, "version": folder.name}, properties)
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{_KINDS[kind]}.yaml"
    file.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    return file


def _uploaded(service: LocalService, uri: str) -> Path | None:
    container, _, path = unquote(urlsplit(uri).path).strip("/").partition("/")
    return datastores.path_of(service.workspace if service.account in uri else service.home, container, path)


def _environment(service: LocalService, spec: dict[str, Any], properties: dict[str, Any]) -> dict[str, Any]:
    if properties.get("image"):
        spec["image"] = properties["image"]
    if properties.get("condaFile"):
        spec["conda_file"] = yaml.safe_load(properties["condaFile"])
    if build := properties.get("build"):
        context = _uploaded(service, build["contextUri"]) or build["contextUri"]
        spec["build"] = {"path": str(context)}
        if build.get("dockerfilePath"):
            spec["build"]["dockerfile_path"] = build["dockerfilePath"]
    return spec


def _component(service: LocalService, spec: dict[str, Any], properties: dict[str, Any]) -> dict[str, Any]:
    left_out = ("_source", "additional_includes")  # the uploaded code contains them
    sent = {key: value for key, value in (properties.get("componentSpec") or {}).items() if key not in left_out}
    if sent.get("code"):
        code = replace(asset_id.parse(str(sent["code"]), asset_id.CODE), registry="")
        sent["code"] = str(registered.find(service.workspace, code).path)
    if sent.get("jobs"):
        sent["jobs"] = internals.nodes_of_rest(sent)
    return {**spec, **sent, "version": spec["version"]}  # an anonymous one has a name of its own
