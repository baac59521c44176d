"""Codes, environments, components, data and models: versions that never change once they are there."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from fake import answers, arm, uploads
from fake.component_checks import check_component
from fake.messages import Answer, Refusal, Request, not_found, user_error
from fake.name_rules import complaint
from fake.names import BLOBS, MANAGEMENT, REGISTRY_HOST
from fake.routing import route

if TYPE_CHECKING:
    from fake.service import FakeAzure

KINDS = ("codes", "environments", "components", "data", "models")
_CHANGEABLE = (
    "description",
    "tags",
    "properties",
    "isArchived",
    "stage",
    "autoDeleteSetting",
    "provisioningState",
    "flavors",
)
"""What may differ between two bodies of the same version."""

_SPEC_TEXTS = ("description", "tags", "display_name")

_SINGULAR = {
    "codes": "Code",
    "environments": "Environment",
    "components": "Component",
    "data": "Data",
    "models": "Model",
}


class Assets:
    """What a workspace or a registry holds.

    identify: gives the id of kind, name and version
    """

    def __init__(self, identify: Callable[..., str]) -> None:
        self.identify = identify
        self._kinds: dict[str, dict[tuple[str, str], dict[str, Any]]] = {kind: {} for kind in KINDS}
        self.archived: set[tuple[str, str]] = set()

    def of(self, kind: str) -> dict[tuple[str, str], dict[str, Any]]:
        """REST bodies by name and version, in the order of their making, with the properties that were sent."""
        return self._kinds[kind]

    def versions(self, kind: str, name: str) -> list[dict[str, Any]]:
        """The newest first. Raises Refusal where there is no such name."""
        found = [body for (other, _), body in self.of(kind).items() if other == name]
        if not found:
            raise self.missing(kind, name)
        return found[::-1]

    def get(self, kind: str, name: str, version: str) -> dict[str, Any]:
        """Raises Refusal where there is none."""
        body = self.of(kind).get((name, version))
        if body is None:
            raise self.missing(kind, name, version)
        return body

    def missing(self, kind: str, name: str, version: str = "") -> Refusal:
        if kind == "components":
            found = f"Not found component {name}{version and f' (version: {version})'}."
            return Refusal(404, "UserError", found, inner=("NotFound", "ComponentNotFound"))
        return not_found(f"{_SINGULAR[kind]} {name}{version and f':{version}'}")

    def put(self, kind: str, name: str, version: str, properties: dict[str, Any]) -> tuple[dict[str, Any], bool]:
        """Stores a version; also says whether it is new. The same content is accepted again. Raises Refusal."""
        _check_name(kind, name, version)
        if kind == "components" and properties.get("isAnonymous"):
            version = _anonymous_version(properties)
        before = self.of(kind).get((name, version))
        if before and properties.get("isAnonymous"):
            return before, False
        if before and (changed := _changed(kind, before["properties"], properties)):
            raise _immutable(kind, name, changed)
        sent = {**before["properties"], **properties} if before else properties
        if before and kind == "components":  # the client may send what it was shown, which is less than what it sent
            texts = {key: value for key, value in properties["componentSpec"].items() if key in _SPEC_TEXTS}
            sent["componentSpec"] = {**before["properties"]["componentSpec"], **texts}
        body = arm.resource(self.identify(kind, name, version), version, f"{kind}/versions", sent, before)
        self.of(kind)[name, version] = body
        return body, before is None

    def container(self, kind: str, name: str) -> dict[str, Any]:
        """Raises Refusal where no version has this name."""
        newest = self.versions(kind, name)[0]
        numbers = [int(body["name"]) for body in self.versions(kind, name) if body["name"].isdecimal()]
        properties = {
            "latestVersion": newest["name"],
            "nextVersion": str(max(numbers, default=0) + 1),
            "isArchived": (kind, name) in self.archived,
            "tags": {},
            "properties": {},
            "description": None,
        }
        if kind == "components":
            next_version = f"{time.strftime('%Y-%m-%d-%H-%M-%S')}-{time.time_ns() // 100 % 10**7:07}"
            properties |= {"latestVersion": None, "nextVersion": next_version, "description": ""}
        if kind == "data":
            properties["dataType"] = newest["properties"].get("dataType")
        return arm.resource(self.identify(kind, name), name, kind, properties)


def scope(azure: FakeAzure, request: Request) -> Assets:
    """The workspace's or the registry's, by the path."""
    return azure.registry if "/registries/" in request.path else azure.assets


def _both(kind_path: str) -> list[tuple[str, str]]:
    return [(MANAGEMENT, "{workspace}" + kind_path), (REGISTRY_HOST, "/mferp/managementfrontend{registry}" + kind_path)]


def _route(method: str, kind_path: str, kinds: Sequence[str] = KINDS):  # type: ignore[no-untyped-def]
    def put(handler: Callable[..., Answer]) -> Callable[..., Answer]:
        for host, template in _both(kind_path):
            for kind in kinds:
                route(host, method, template.replace("{kind}", kind))(_with_kind(handler, kind))
        return handler

    return put


def _with_kind(handler: Callable[..., Answer], kind: str) -> Callable[..., Answer]:
    def handle(azure: FakeAzure, request: Request, **parts: str) -> Answer:
        return handler(azure, request, kind, **parts)

    return handle


@_route("GET", "/{kind}")
def list_containers(azure: FakeAzure, request: Request, kind: str) -> Answer:
    assets = scope(azure, request)
    names = dict.fromkeys(name for name, _ in assets.of(kind) if not name.startswith(("azureml_anonymous", "CliV2")))
    return arm.page(azure, request, arm.viewed(request, [assets.container(kind, name) for name in names]))


@_route("GET", "/{kind}/{name}")
def get_container(azure: FakeAzure, request: Request, kind: str, name: str) -> Answer:
    return Answer.of(scope(azure, request).container(kind, name))


@_route("PUT", "/{kind}/{name}")
def put_container(azure: FakeAzure, request: Request, kind: str, name: str) -> Answer:
    assets = scope(azure, request)
    body = assets.container(kind, name)
    (assets.archived.add if request.json["properties"].get("isArchived") else assets.archived.discard)((kind, name))
    return Answer.of(body)


@_route("GET", "/{kind}/{name}/versions")
def list_versions(azure: FakeAzure, request: Request, kind: str, name: str) -> Answer:
    assets = scope(azure, request)
    wanted = request.query.get("hash")
    if wanted:
        # Whoever asks by content does not know the name under which it is there.
        found = [body for body in assets.of(kind).values() if _hash(body) == wanted]
        return arm.page(azure, request, [_shown(kind, body) for body in found])
    try:
        found = assets.versions(kind, name)
    except Refusal:
        if kind != "codes" and assets is not azure.registry:
            raise  # in a registry the SDK looks for earlier versions before it creates the first one
        found = []
    top = request.query.get("$top", request.query.get("top"))
    found = arm.viewed(request, [_shown(kind, body) for body in found])
    return arm.page(azure, request, found[: int(top)] if top else found)


@_route("GET", "/{kind}/{name}/versions/{version}")
def get_version(azure: FakeAzure, request: Request, kind: str, name: str, version: str) -> Answer:
    return Answer.of(_shown(kind, scope(azure, request).get(kind, name, version)))


@_route("PUT", "/{kind}/{name}/versions/{version}")
def put_version(azure: FakeAzure, request: Request, kind: str, name: str, version: str) -> Answer:
    properties = request.json.get("properties") or {}
    assets = scope(azure, request)
    if kind == "components":
        check_component(azure, assets, properties)
    if kind == "codes":
        uploads.check_upload(azure, properties)
    body, new = assets.put(kind, name, version, properties)
    # An environment, and what is anonymous, counts as made each time.
    if new or kind == "environments" or (kind == "components" and properties.get("isAnonymous")):
        return arm.created(request, _shown(kind, body))
    return Answer.of(_shown(kind, body))


def _shown(kind: str, body: dict[str, Any]) -> dict[str, Any]:
    return {**body, "properties": answers.asset(kind, body["properties"])}


def _anonymous_version(properties: dict[str, Any]) -> str:
    """What the service calls an anonymous component, by its content, whatever version was sent."""
    spec = {key: value for key, value in properties["componentSpec"].items() if key != "version"}
    return str(uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(spec, sort_keys=True)))


@_route("POST", "/{kind}/{name}/versions/{version}/startPendingUpload", kinds=["codes"])
def start_pending_upload(azure: FakeAzure, request: Request, kind: str, name: str, version: str) -> Answer:
    """A container of its own for what is to be uploaded, and a SAS for it."""
    container = f"{uuid.uuid4().hex[:10]}-{uuid.uuid4()}"
    uri = f"https://{BLOBS}:443/{container}"
    sas = azure.blobs.signatures.sas(container, permissions="rwlac")
    credential = {"credentialType": "SAS", "sasUri": f"https://{BLOBS}/{container}?{sas}"}
    return Answer.of(
        {
            "pendingUploadId": str(uuid.uuid4()),
            "pendingUploadType": "TemporaryBlobReference",
            "blobReferenceForConsumption": {"blobUri": uri, "storageAccountArmId": "", "credential": credential},
        }
    )


def _hash(body: dict[str, Any]) -> str | None:
    found = (body["properties"].get("properties") or {}).get("hash_sha256")
    return str(found) if found else None


def _check_name(kind: str, name: str, version: str) -> None:
    if wrong := complaint(kind, name):
        raise user_error(wrong)


def _changed(kind: str, before: dict[str, Any], now: dict[str, Any]) -> str:
    """The first field whose content differs; "" if none does."""
    contents = [_content(kind, answers.asset(kind, properties)) for properties in (before, now)]
    if contents[0] == contents[1] or not all(isinstance(content, dict) for content in contents):
        return "" if contents[0] == contents[1] else "code"
    first, second = (content.get("componentSpec", content) for content in contents)
    return next((key for key in {**first, **second} if first.get(key) != second.get(key)), "")


def _content(kind: str, properties: dict[str, Any]) -> Any:
    kept = {key: value for key, value in properties.items() if key not in _CHANGEABLE}
    if kind == "codes":
        return _hash({"properties": properties}) or kept
    if kind == "environments":
        build = kept.get("build") or {}
        kept["build"] = {key: build.get(key) for key in ("contextUri", "dockerfilePath")} if build else None
    if kind == "components":
        spec = kept["componentSpec"]
        kept["componentSpec"] = {key: value for key, value in spec.items() if key not in _SPEC_TEXTS}
    return _without_nothing(kept)


def _without_nothing(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nothing(inner) for key, inner in value.items() if inner not in (None, {}, [], False)}
    return value


def _immutable(kind: str, name: str, field: str) -> Refusal:
    if kind != "components":
        called = _SINGULAR[kind].lower()
        return Refusal(
            409,
            "ResourceExistsError",
            f"A {called} with this name and version already exists. If you are trying to create a new {called}, use a "
            "different name or version.",
        )
    found = f'Failed to update component {name} since field "{field}" is immutable, try specifying a new version.'
    return Refusal(400, "UserError", found, inner=("BadArgument", "ArgumentInvalid", "UpdateComponentFailed"))
