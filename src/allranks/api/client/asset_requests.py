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

from allranks.api.client.service import (
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
from allranks.plan.assets import asset_id, registered
from allranks.plan.assets.asset_id import AssetId
from allranks.runs import assets as store_assets
from allranks.runs import datastores
from allranks.runs.assets import RegisteredAsset
from allranks.runs.store import Store

_KINDS = {
    "codes": asset_id.CODE,
    "components": asset_id.COMPONENT,
    "data": asset_id.DATA,
    "environments": asset_id.ENVIRONMENT,
    "models": asset_id.MODEL,
}
_ADDED: dict[str, dict[str, Any]] = {
    "codes": {"provisioningState": "Succeeded"},
    "components": {"provisioningState": "Succeeded"},
    "data": {},
    "environments": {"provisioningState": "Succeeded"},
    "models": {"provisioningState": "Succeeded", "flavors": {}, "stage": "None"},
}
"""What the service adds to a version."""

_CHANGEABLE = {"description", "tags", "properties", "isArchived", "stage", "autoDeleteSetting", *_ADDED["models"]}
_CHANGEABLE_SPEC = {"description", "tags", "display_name", "_source"}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,254}")
_ANONYMOUS = ("azureml_anonymous", "CliV2Anonymous")
_CONTAINER = "container.json"


def _folder(service: LocalService, kind: str, name: str = "") -> Path:
    return service.workspace.root / "assets" / kind / name


def _check(kind: str, *names: str) -> None:
    if wrong := [name for name in names if not _NAME.fullmatch(name)]:
        allowed = "letters, digits, hyphens, underscores and dots"
        raise Refusal(400, f"The name or version '{wrong[0]}' of {kind} is invalid. It may have {allowed}.")


def _missing(kind: str, name: str, version: str = "") -> Refusal:
    called = f"{name}:{version}" if version else name
    if kind == "components":
        return Refusal(404, f"Not found component {called}.")
    return not_found(f"{_KINDS[kind].capitalize()} {called}")


def _versions(service: LocalService, request: Request, kind: str, name: str) -> list[dict[str, Any]]:
    """Return every version, the newest first. Raise Refusal if there is none."""
    _check(kind, name)
    bodies = {body["name"]: body for body in _stored(_folder(service, kind, name))}
    for asset in _registered(service, kind, name):
        if asset.version not in bodies:
            bodies[asset.version] = _synthesized(request, kind, asset)
    if not bodies:
        raise _missing(kind, name)
    found = sorted(bodies.values(), key=lambda body: str(body["systemData"]["createdAt"]), reverse=True)
    return [{**body, "id": f"{request.scope}/{kind}/{name}/versions/{body['name']}"} for body in found]


def _stored(folder: Path) -> Iterator[dict[str, Any]]:
    for file in folder.glob("*.json"):
        if file.name != _CONTAINER:
            yield json.loads(file.read_text(encoding="utf-8"))


def _registered(service: LocalService, kind: str, name: str) -> Iterator[RegisteredAsset]:
    """Yield the versions that runs have registered."""
    database = service.workspace.database
    if database.exists():
        with Store(database) as store:
            yield from store_assets.versions(store.connection, _KINDS[kind], name)
    if kind == "models":
        model = AssetId(asset_id.MODEL, name)
        for place, version in enumerate(registered.find(service.workspace, model).versions):
            if path := registered.find(service.workspace, replace(model, version=version)).path:
                yield RegisteredAsset(asset_id.MODEL, name, version, path, -place)


def _synthesized(request: Request, kind: str, asset: RegisteredAsset) -> dict[str, Any]:
    """Return the body of a version that a run has registered."""
    properties: dict[str, Any] = {"isArchived": False, "tags": {}, "properties": {}, **_ADDED[kind]}
    if kind == "data":
        data_type = "uri_folder" if asset.path.is_dir() else "uri_file"
        properties |= {"dataType": data_type, "dataUri": str(asset.path)}
    elif kind == "models":
        is_mlflow = (asset.path / "MLmodel").exists()
        model_type = "mlflow_model" if is_mlflow else "custom_model"
        properties |= {"modelType": model_type, "modelUri": str(asset.path)}
    path = f"/{kind}/{asset.name}/versions/{asset.version}"
    return resource(request, path, properties, max(asset.created, 0.0))


def _version(service: LocalService, request: Request, kind: str, name: str, version: str) -> dict[str, Any]:
    try:
        found = _versions(service, request, kind, name)
    except Refusal as refusal:
        raise _missing(kind, name, version) if refusal.status == 404 else refusal from None
    body = next((body for body in found if body["name"] == version), None)
    if body is None:
        raise _missing(kind, name, version)
    return body


def _container(service: LocalService, request: Request, kind: str, name: str) -> dict[str, Any]:
    versions = _versions(service, request, kind, name)
    numbers = [int(body["name"]) for body in versions if body["name"].isdecimal()]
    properties = {
        "latestVersion": versions[0]["name"],
        "nextVersion": str(max(numbers, default=0) + 1),
        "isArchived": (_folder(service, kind, name) / _CONTAINER).exists(),
        "tags": {},
        "properties": {},
        "description": None,
    }
    if kind == "data":
        properties["dataType"] = versions[0]["properties"].get("dataType")
    return resource(request, f"/{kind}/{name}", properties)


@route("GET", *(f"/{kind}" for kind in _KINDS))
def list_containers(service: LocalService, request: Request) -> Answer:
    kind = request.path.strip("/").lower()
    names = {folder.name for folder in _folder(service, kind).glob("*/")}
    if service.workspace.database.exists():
        with Store(service.workspace.database) as store:
            names |= set(store_assets.names(store.connection, _KINDS[kind]))
    if kind == "models":
        names |= set(registered.model_names(service.workspace))
    shown = sorted(name for name in names if not name.startswith(_ANONYMOUS))
    return viewed(request, [_container(service, request, kind, name) for name in shown])


@route("GET", *(f"/{kind}/{{name}}" for kind in _KINDS))
def get_container(service: LocalService, request: Request, name: str) -> Answer:
    return Answer(_container(service, request, _kind(request), name))


@route("PUT", *(f"/{kind}/{{name}}" for kind in _KINDS))
def put_container(service: LocalService, request: Request, name: str) -> Answer:
    kind = _kind(request)
    body = _container(service, request, kind, name)
    file = _folder(service, kind, name) / _CONTAINER
    if request.body["properties"].get("isArchived"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}", encoding="utf-8")
    else:
        file.unlink(missing_ok=True)
    return Answer(body)


@route("GET", *(f"/{kind}/{{name}}/versions" for kind in _KINDS))
def list_versions(service: LocalService, request: Request, name: str) -> Answer:
    kind = _kind(request)
    if content := request.query.get("hash"):
        # The SDK looks for code by its content, under any name.
        codes = (body for folder in _folder(service, kind).glob("*/") for body in _stored(folder))
        return Answer({"value": [body for body in codes if _hash(body["properties"]) == content]})
    found = viewed(request, _versions(service, request, kind, name)).body["value"]
    if "asc" in request.query.get("$orderBy", request.query.get("orderBy", "")):
        found.reverse()
    top = request.query.get("$top", request.query.get("top"))
    return Answer({"value": found[: int(top)] if top else found})


@route("GET", *(f"/{kind}/{{name}}/versions/{{version}}" for kind in _KINDS))
def get_version(service: LocalService, request: Request, name: str, version: str) -> Answer:
    return Answer(_version(service, request, _kind(request), name, version))


@route("PUT", *(f"/{kind}/{{name}}/versions/{{version}}" for kind in _KINDS))
def put_version(service: LocalService, request: Request, name: str, version: str) -> Answer:
    """Create a version, or change what describes it. Raise Refusal if its content would change."""
    kind, properties = _kind(request), request.body.get("properties") or {}
    _check(kind, name, version)
    file = _folder(service, kind, name) / f"{version}.json"
    try:
        before = _version(service, request, kind, name, version)
    except Refusal:
        before = None
    if before and properties.get("isAnonymous"):
        return Answer(before)
    if before and _content(kind, before["properties"]) != _content(kind, properties):
        raise _immutable(kind, name, version)
    earlier = before["properties"] if before else {"isArchived": False, **_ADDED[kind]}
    body = resource(request, f"/{kind}/{name}/versions/{version}", {**earlier, **properties})
    if before:
        body["systemData"]["createdAt"] = before["systemData"]["createdAt"]
    else:
        _register(service, kind, name, version, properties)
    write_json(file, body)
    return Answer(body, 200 if before else 201)


@route("POST", "/codes/{name}/versions/{version}/startPendingUpload")
def start_upload(service: LocalService, request: Request, name: str, version: str) -> Answer:  # noqa: ARG001
    address = f"https://{service.account}.blob.core.windows.net/code-{uuid.uuid4()}"
    credential = {"credentialType": "SAS", "sasUri": f"{address}?sig=local"}
    reference = {"blobUri": address, "storageAccountArmId": "", "credential": credential}
    return Answer(
        {
            "pendingUploadId": str(uuid.uuid4()),
            "pendingUploadType": "TemporaryBlobReference",
            "blobReferenceForConsumption": reference,
        }
    )


def _kind(request: Request) -> str:
    return request.path.split("/")[1].lower()


def _hash(properties: dict[str, Any]) -> Any:
    return (properties.get("properties") or {}).get("hash_sha256")


def _content(kind: str, properties: dict[str, Any]) -> Any:
    """Return what may not change of a version."""
    if kind == "codes" and (digest := _hash(properties)):
        return digest
    fixed = {key: value for key, value in properties.items() if key not in _CHANGEABLE}
    if kind == "components":
        spec = fixed.get("componentSpec") or {}
        fixed["componentSpec"] = {key: value for key, value in spec.items() if key not in _CHANGEABLE_SPEC}
    return _without_empty(fixed)


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_empty(inner) for key, inner in value.items() if inner not in (None, {}, [], False)}
    return value


def _immutable(kind: str, name: str, version: str) -> Refusal:
    called = _KINDS[kind]
    if kind in ("data", "models"):
        message = f"A {called} with this name and version already exists. If you are trying to create a new {called}, "
        return Refusal(409, f"{message}use a different name or version.", "ResourceExistsError")
    return Refusal(
        400, f"{called.capitalize()} {name} with version {version} is already registered and cannot be changed."
    )


def _register(service: LocalService, kind: str, name: str, version: str, properties: dict[str, Any]) -> None:
    """Store where a version is on this machine, so that pipelines find it."""
    path = _path(service, kind, _folder(service, kind, name) / version, properties)
    if path is None:
        return
    service.workspace.make()
    with Store(service.workspace.database) as store:
        store_assets.add(store.connection, RegisteredAsset(_KINDS[kind], name, version, path, time.time()))


def _path(service: LocalService, kind: str, folder: Path, properties: dict[str, Any]) -> Path | None:
    """Return the path of a version: its files, or the YAML file that describes it, which is written into a folder."""
    if kind in ("data", "models"):
        uri = str(properties.get("dataUri" if kind == "data" else "modelUri") or "")
        return local_path(service, uri)
    if kind == "codes":
        return _uploaded(service, str(properties.get("codeUri")))
    spec = (
        _environment_spec(service, folder, properties)
        if kind == "environments"
        else _component_spec(service, properties)
    )
    if spec is None:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{_KINDS[kind]}.yaml"
    file.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    return file


def local_path(service: LocalService, uri: str) -> Path | None:
    """Return the path of data on this machine; None if there is none."""
    if uri.startswith(("/", "file://")):
        path = Path(unquote(urlsplit(uri).path))
        return path if path.exists() else None
    try:
        return registered.find(service.workspace, asset_id.parse(uri, asset_id.DATA)).path
    except ValueError:
        return None


def _uploaded(service: LocalService, uri: str) -> Path | None:
    container, _, path = unquote(urlsplit(uri).path).strip("/").partition("/")
    return datastores.path_of(service.workspace, container, path)


def _environment_spec(service: LocalService, folder: Path, properties: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = {"name": folder.parent.name, "version": folder.name}
    if image := properties.get("image"):
        spec["image"] = image
    if conda := properties.get("condaFile"):
        spec["conda_file"] = yaml.safe_load(conda)
    if build := properties.get("build"):
        context = _uploaded(service, str(build.get("contextUri")))
        spec["build"] = {
            "path": str(context or build.get("contextUri")),
            "dockerfile_path": build.get("dockerfilePath"),
        }
    return spec


def _component_spec(service: LocalService, properties: dict[str, Any]) -> dict[str, Any] | None:
    spec = dict(properties.get("componentSpec") or {})
    if spec.get("type") == "pipeline":
        return None
    if code := spec.pop("code", None):
        asset = asset_id.parse(str(code), asset_id.CODE)
        spec["code"] = str(registered.find(service.workspace, asset).path)
    spec.pop("additional_includes", None)  # the uploaded code contains them
    spec.pop("_source", None)
    return spec
