"""Codes, environments, components, data and models: versions that never change once they exist."""

import functools
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from allranks_client.asset_answers import shown_properties
from allranks_client.emulation import SHARED, Service, created, resource, select
from allranks_client.messages import Answer, Refusal, Request, not_found
from allranks_client.routing import MANAGEMENT, REGISTRY_HOST

SINGULAR = {
    "codes": "Code",
    "environments": "Environment",
    "components": "Component",
    "data": "Data",
    "models": "Model",
}
"""The kinds, each with its singular."""

_CHANGEABLE = {"description", "tags", "properties", "isArchived", "stage", "autoDeleteSetting"}
_CHANGEABLE |= {"provisioningState", "flavors"}  # added by the service
"""Keys that may differ between two bodies of the same version."""
_SPEC_TEXTS = ("description", "tags", "display_name")
_ANONYMOUS = ("azureml_anonymous", "CliV2Anonymous")


class Assets:
    """The versions of a workspace or a registry. A subclass stores their bodies, with the properties as sent.

    scope: the id of the workspace or registry
    """

    scope: str

    def names(self, kind: str) -> Iterable[str]:
        """Return the names that have versions."""
        raise NotImplementedError

    def all(self, kind: str) -> Iterable[dict[str, Any]]:
        """Return the bodies of all versions of a kind."""
        raise NotImplementedError

    def find(self, kind: str, name: str, version: str = "") -> list[dict[str, Any]]:
        """Return the bodies of the versions of a name, the newest first. version: only this one; "": all of them"""
        raise NotImplementedError

    def store(self, kind: str, name: str, body: dict[str, Any], *, is_new: bool) -> None:
        """Store the body of a version."""
        raise NotImplementedError

    def is_archived(self, kind: str, name: str) -> bool:
        """Return whether a name is archived."""
        raise NotImplementedError

    def archive(self, kind: str, name: str, archived: bool) -> None:
        """Set whether a name is archived."""
        raise NotImplementedError

    def show(self, kind: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the body of a version as the service returns it."""
        properties = shown_properties(kind, body["properties"], self.scope)
        if kind == "components":
            properties["componentSpec"].setdefault("version", body["name"])
        return {**body, "properties": properties}

    def accept(self, kind: str, name: str, version: str, properties: dict[str, Any]) -> str:
        """Return the version under which to store an asset. Raise Refusal if the service rejects it."""
        raise NotImplementedError

    def next_version(self, kind: str, versions: list[dict[str, Any]]) -> str:
        """Return the version for an asset that was sent without one."""
        return str(max((int(body["name"]) for body in versions if body["name"].isdecimal()), default=0) + 1)

    def versions(self, kind: str, name: str) -> list[dict[str, Any]]:
        """Return all versions of a name, the newest first. Raise Refusal if it has none."""
        if found := self.find(kind, name):
            return found
        raise self.missing(kind, name)

    def existing(self, kind: str, name: str, version: str) -> dict[str, Any] | None:
        """Return the body of a version; None if there is none."""
        return next((body for body in self.find(kind, name, version) if body["name"] == version), None)

    def get(self, kind: str, name: str, version: str) -> dict[str, Any]:
        """Return the body of a version. Raise Refusal if there is none."""
        if body := self.existing(kind, name, version):
            return body
        raise self.missing(kind, name, version)

    def missing(self, kind: str, name: str, version: str = "") -> Refusal:
        """Return the error for a name or a version that does not exist."""
        if kind == "components":
            found = f"Not found component {name}{version and f' (version: {version})'}."
            return Refusal(404, "UserError", found, inner=("NotFound", "ComponentNotFound"))
        return not_found(f"{SINGULAR[kind]} {name}{version and f':{version}'}")

    def put(self, kind: str, name: str, version: str, properties: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """Store a version. Return its body, and whether it is new. Accept the same content again, and raise Refusal for
        other content."""
        version = self.accept(kind, name, version, properties)
        path = f"/{kind}/{name}/versions/{version}"
        before = self.existing(kind, name, version)
        body = resource(self.scope, path, properties, before)
        if before:
            if properties.get("isAnonymous"):
                return before, False
            if changed := _changed_field(kind, self.show(kind, before), self.show(kind, body)):
                raise _immutable(kind, name, changed)
            body["properties"] = {**before["properties"], **properties}
            if kind == "components":  # the client may send the component as returned, which is less than it sent before
                texts = {key: value for key, value in properties["componentSpec"].items() if key in _SPEC_TEXTS}
                body["properties"]["componentSpec"] = {**before["properties"]["componentSpec"], **texts}
        self.store(kind, name, body, is_new=before is None)
        return body, before is None

    def container(self, kind: str, name: str) -> dict[str, Any]:
        """Return the properties of a name besides its versions. Raise Refusal if it has no version."""
        versions = self.versions(kind, name)
        properties = {
            "latestVersion": versions[0]["name"],
            "nextVersion": self.next_version(kind, versions),
            "isArchived": self.is_archived(kind, name),
            "tags": {},
            "properties": {},
            "description": None,
        }
        if kind == "components":
            properties |= {"latestVersion": None, "description": ""}
        if kind == "data":
            properties["dataType"] = versions[0]["properties"].get("dataType")
        return resource(self.scope, f"/{kind}/{name}", properties)


def _route(method: str, path: str, kinds: Iterable[str] = SINGULAR) -> Callable[[Callable[..., Answer]], Any]:
    """Register a function for each kind, in workspaces and in registries."""

    def add(handler: Callable[..., Answer]) -> Callable[..., Answer]:
        for kind in kinds:
            of_kind = functools.partial(_of_kind, handler, kind)
            below = path.replace("{kind}", kind)
            SHARED.route(MANAGEMENT, method, "{workspace}" + below)(of_kind)
            SHARED.route(REGISTRY_HOST, method, "/mferp/managementfrontend{registry}" + below)(of_kind)
        return handler

    return add


def _of_kind(handler: Callable[..., Answer], kind: str, service: Service, request: Request, **parts: str) -> Answer:
    return handler(service, request, service.assets_of(request), kind, **parts)


@_route("GET", "/{kind}")
def list_containers(service: Service, request: Request, assets: Assets, kind: str) -> Answer:
    names = [name for name in assets.names(kind) if not name.startswith(_ANONYMOUS)]
    return service.page(request, select(request, [assets.container(kind, name) for name in names]))


@_route("GET", "/{kind}/{name}")
def get_container(service: Service, request: Request, assets: Assets, kind: str, name: str) -> Answer:
    return Answer.of(assets.container(kind, name))


@_route("PUT", "/{kind}/{name}")
def put_container(service: Service, request: Request, assets: Assets, kind: str, name: str) -> Answer:
    body = assets.container(kind, name)
    assets.archive(kind, name, bool(request.json["properties"].get("isArchived")))
    return Answer.of(body)


@_route("GET", "/{kind}/{name}/versions")
def list_versions(service: Service, request: Request, assets: Assets, kind: str, name: str) -> Answer:
    if content := request.query.get("hash"):
        # The SDK looks for code by its content, under any name.
        found = [body for body in assets.all(kind) if _hash(body["properties"]) == content]
        return service.page(request, [assets.show(kind, body) for body in found])
    found = assets.find(kind, name)
    # In a registry the SDK looks for earlier versions before it creates the first one.
    if not found and kind != "codes" and not request.registry:
        raise assets.missing(kind, name)
    found = select(request, [assets.show(kind, body) for body in found])
    if "asc" in request.query.get("$orderBy", request.query.get("orderBy", "")):
        found.reverse()
    top = request.query.get("$top", request.query.get("top"))
    return service.page(request, found[: int(top)] if top else found)


@_route("GET", "/{kind}/{name}/versions/{version}")
def get_version(service: Service, request: Request, assets: Assets, kind: str, name: str, version: str) -> Answer:
    return Answer.of(assets.show(kind, assets.get(kind, name, version)))


@_route("PUT", "/{kind}/{name}/versions/{version}")
def put_version(service: Service, request: Request, assets: Assets, kind: str, name: str, version: str) -> Answer:
    properties = request.json.get("properties") or {}
    body, is_new = assets.put(kind, name, version, properties)
    # An environment, and an anonymous asset, counts as created each time.
    if is_new or kind == "environments" or (kind == "components" and properties.get("isAnonymous")):
        return created(request, assets.show(kind, body))
    return Answer.of(assets.show(kind, body))


@_route("POST", "/{kind}/{name}/versions/{version}/startPendingUpload", ["codes"])
def start_upload(service: Service, request: Request, assets: Assets, kind: str, **_: str) -> Answer:
    """Return a new container for an upload, and a SAS for it."""
    return Answer.of(upload_target(service, f"{kind}-{uuid.uuid4()}"))


@SHARED.route(REGISTRY_HOST, "PUT", "/mferp/managementfrontend{registry}/tempdatarefs/{name}/versions/{version}")
def start_registry_upload(service: Service, request: Request, name: str, version: str) -> Answer:
    """Return a new container for the files of a new version in a registry. Raise Refusal if the version exists."""
    kind = str(request.json.get("assetId")).removeprefix(f"{request.scope}/").partition("/")[0]
    if service.assets_of(request).existing(kind, name, version):
        raise Refusal(409, "Conflict", f"{kind} {name}:{version} already exists in registry {request.registry}.")
    return Answer.of(upload_target(service, f"{request.registry}-{uuid.uuid4()}"))


def upload_target(service: Service, container: str) -> dict[str, Any]:
    """Return the address of a container, with a SAS."""
    address = f"https://{service.account}.blob.core.windows.net/{container}"
    credential = {"credentialType": "SAS", "sasUri": f"{address}?{service.signature()}"}
    reference = {"blobUri": address, "storageAccountArmId": "", "credential": credential}
    pending = {"pendingUploadId": str(uuid.uuid4()), "pendingUploadType": "TemporaryBlobReference"}
    return {**pending, "blobReferenceForConsumption": reference, "temporaryDataReferenceId": str(uuid.uuid4())}


def _hash(properties: dict[str, Any]) -> str | None:
    found = (properties.get("properties") or {}).get("hash_sha256")
    return str(found) if found else None


def _changed_field(kind: str, before: dict[str, Any], now: dict[str, Any]) -> str:
    """Return the first field whose content differs; "" if none does."""
    contents = [_content(kind, body["properties"]) for body in (before, now)]
    if contents[0] == contents[1] or not all(isinstance(content, dict) for content in contents):
        return "" if contents[0] == contents[1] else "code"
    first, second = (content.get("componentSpec", content) for content in contents)
    return next((key for key in {**first, **second} if first.get(key) != second.get(key)), "")


def _content(kind: str, properties: dict[str, Any]) -> Any:
    """Return the immutable part of a version."""
    fixed = {key: value for key, value in properties.items() if key not in _CHANGEABLE}
    if kind == "codes":
        return _hash(properties) or fixed
    if kind == "environments":
        build = fixed.get("build") or {}
        fixed["build"] = {key: build.get(key) for key in ("contextUri", "dockerfilePath")} if build else None
    if kind == "components":
        spec = fixed["componentSpec"]
        fixed["componentSpec"] = {key: value for key, value in spec.items() if key not in _SPEC_TEXTS}
    return _without_empty(fixed)


def _without_empty(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_empty(inner) for key, inner in value.items() if inner not in (None, {}, [], False)}
    return value


def _immutable(kind: str, name: str, field: str) -> Refusal:
    """Return the error for a version whose content would change.

    azure-ai-ml creates the next version of an environment when it receives 409. Recordings of the service show another
    status for components.
    """
    if kind != "components":
        called = SINGULAR[kind].lower()
        again = f"If you are trying to create a new {called}, use a different name or version."
        message = f"A {called} with this name and version already exists. {again}"
        return Refusal(409, "ResourceExistsError", message)
    found = f'Failed to update component {name} since field "{field}" is immutable, try specifying a new version.'
    return Refusal(400, "UserError", found, inner=("BadArgument", "ArgumentInvalid", "UpdateComponentFailed"))
