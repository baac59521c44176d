"""The assets of `LocalClient`: versions in ``assets/`` of the workspace folder.

Each version is a JSON file, the REST body that the client has sent. The store contains its path on this machine, by
which pipelines find it.
"""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml

from allranks.history import datastores, registered
from allranks.history.registered import RegisteredAsset
from allranks.history.store import Store
from allranks.plan.assets import asset_id
from allranks.plan.assets.asset_id import AssetId
from allranks.plan.assets.lookup import AssetLookup
from allranks.sdk import internals, specs
from allranks_client import sdk_parts
from allranks_client.assets import Assets
from allranks_client.emulation import resource
from allranks_client.messages import Request, user_error
from allranks_client.storage import LocalFolder, write_json

KINDS = {
    "codes": asset_id.CODE,
    "components": asset_id.COMPONENT,
    "data": asset_id.DATA,
    "environments": asset_id.ENVIRONMENT,
    "models": asset_id.MODEL,
}
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,254}")
_ARCHIVED = "archived"
"""The file that marks a name as archived."""


class LocalAssets(Assets):
    """The assets in the folder of a workspace or a registry, for one request: ids begin with the names in it."""

    def __init__(self, service: LocalFolder, request: Request) -> None:
        self._service = service
        self.scope = request.scope

    def _folder(self, kind: str, name: str = "") -> Path:
        return self._service.workspace.root / "assets" / kind / name

    def names(self, kind: str) -> list[str]:
        names = {folder.name for folder in self._folder(kind).glob("*/")}
        if self._service.workspace.database.exists():
            with Store(self._service.workspace.database) as store:
                names |= set(registered.names(store.connection, KINDS[kind]))
        if kind == "models":
            names |= set(registered.model_names(self._service.workspace))
        return sorted(names)

    def all(self, kind: str) -> Iterator[dict[str, Any]]:
        return (_read(file) for file in self._folder(kind).glob("*/*.json"))

    def find(self, kind: str, name: str, version: str = "") -> list[dict[str, Any]]:
        """Return every version, or the one in ``allranks.yaml`` if there is none."""
        _check(kind, name)
        bodies = {body["name"]: body for body in map(_read, self._folder(kind, name).glob("*.json"))}
        for asset in _registered_assets(self._service, kind, name):
            if asset.version not in bodies:
                bodies[asset.version] = _asset_body(self.scope, kind, asset)
        if not bodies and (mapped := _mapped_asset(self._service, kind, name, version)):
            bodies[mapped.version] = _asset_body(self.scope, kind, mapped)
        found = sorted(bodies.values(), key=lambda body: str(body["systemData"]["createdAt"]), reverse=True)
        return [{**body, "id": f"{self.scope}/{kind}/{name}/versions/{body['name']}"} for body in found]

    def store(self, kind: str, name: str, body: dict[str, Any], *, is_new: bool) -> None:
        """Store the body, and the path of a new version for pipelines."""
        service, version, folder = self._service, body["name"], self._folder(kind, name)
        # The service returns less of a component than was sent, and the full addresses of other assets.
        properties = (body if kind == "components" else self.show(kind, body))["properties"]
        if is_new and (path := path_of(service, kind, folder / version, properties)):
            service.workspace.make()
            with Store(service.workspace.database) as store:
                asset = RegisteredAsset(KINDS[kind], name, version, path, time.time())
                registered.add(store.connection, asset)
        write_json(folder / f"{version}.json", body)

    def is_archived(self, kind: str, name: str) -> bool:
        return (self._folder(kind, name) / _ARCHIVED).exists()

    def archive(self, kind: str, name: str, archived: bool) -> None:
        mark = self._folder(kind, name) / _ARCHIVED
        if archived:
            mark.parent.mkdir(parents=True, exist_ok=True)
            mark.touch()
        else:
            mark.unlink(missing_ok=True)

    def accept(self, kind: str, name: str, version: str, properties: dict[str, Any]) -> str:
        _check(kind, name, version)
        return version


def _read(file: Path) -> dict[str, Any]:
    return dict(json.loads(file.read_text(encoding="utf-8")))


def _check(kind: str, *names: str) -> None:
    if wrong := [name for name in names if not _NAME.fullmatch(name)]:
        allowed = "letters, digits, hyphens, underscores and dots"
        raise user_error(f"The name or version '{wrong[0]}' of {kind} is invalid. It may have {allowed}.")


def _registered_assets(service: LocalFolder, kind: str, name: str) -> Iterator[RegisteredAsset]:
    """Yield the versions in the store, and the models that training code has registered in MLflow."""
    if service.workspace.database.exists():
        with Store(service.workspace.database) as store:
            yield from registered.versions(store.connection, KINDS[kind], name)
    if kind == "models":
        model = AssetId(asset_id.MODEL, name)
        for place, version in enumerate(registered.find(service.workspace, model).versions):
            if path := registered.find(service.workspace, replace(model, version=version)).path:
                yield RegisteredAsset(asset_id.MODEL, name, version, path, -place)


def _mapped_asset(service: LocalFolder, kind: str, name: str, version: str) -> RegisteredAsset | None:
    """Return the version of a component, data or a model from the ``allranks.yaml`` of the current folder."""
    if kind not in ("components", "data", "models"):
        return None
    asset = AssetId(KINDS[kind], name, version, registry=service.registry)
    where = f"LocalClient, {kind}.get"
    path = AssetLookup.of(Path.cwd(), None).find(str(asset), asset.kind, where, required=False)
    return RegisteredAsset(asset.kind, name, version or "1", path, 0.0) if path else None


def _asset_body(scope: str, kind: str, asset: RegisteredAsset) -> dict[str, Any]:
    """Return the body of a version that was not created by a client, but by a run or in ``allranks.yaml``."""
    properties: dict[str, Any] = {"tags": {}, "properties": {}}
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
    return resource(scope, path, properties, created=max(asset.created, 0.0))


def path_of(service: LocalFolder, kind: str, folder: Path, properties: dict[str, Any]) -> Path | None:
    """Return the path of a version: its files, or the YAML file that describes it, which is written into a folder. None
    if this machine does not have it."""
    if kind == "codes":
        return _uploaded_path(service, properties["codeUri"])
    if kind in ("data", "models"):
        uri = str(properties.get("dataUri") or properties.get("modelUri") or "")
        if uri.startswith(f"https://{service.account}."):
            return _uploaded_path(service, uri)
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
    file = folder / f"{KINDS[kind]}.yaml"
    file.write_text(yaml.safe_dump(spec, sort_keys=False), encoding="utf-8")
    return file


def _uploaded_path(service: LocalFolder, uri: str) -> Path | None:
    container, _, path = unquote(urlsplit(uri).path).strip("/").partition("/")
    return datastores.path_of(service.workspace if service.account in uri else service.home, container, path)


def _environment(service: LocalFolder, spec: dict[str, Any], properties: dict[str, Any]) -> dict[str, Any]:
    if properties.get("image"):
        spec["image"] = properties["image"]
    if properties.get("condaFile"):
        spec["conda_file"] = yaml.safe_load(properties["condaFile"])
    if build := properties.get("build"):
        context = _uploaded_path(service, build["contextUri"]) or build["contextUri"]
        spec["build"] = {"path": str(context)}
        if build.get("dockerfilePath"):
            spec["build"]["dockerfile_path"] = build["dockerfilePath"]
    return spec


def _component(service: LocalFolder, spec: dict[str, Any], properties: dict[str, Any]) -> dict[str, Any]:
    left_out = ("_source", "additional_includes")  # the uploaded code contains them
    sent = {key: value for key, value in (properties.get("componentSpec") or {}).items() if key not in left_out}
    if sent.get("code"):
        code = replace(asset_id.parse(str(sent["code"]), asset_id.CODE), registry="")
        sent["code"] = str(registered.find(service.workspace, code).path)
    if sent.get("jobs"):
        sent["jobs"] = sdk_parts.nodes_of_rest(sent)
    return {**spec, **sent, "version": spec["version"]}  # an anonymous one has a name of its own
