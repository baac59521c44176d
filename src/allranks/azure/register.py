"""Register environments and components that the workspace does not have yet."""

import difflib
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks.azure.errors import service_errors
from allranks.azure.workspace import quiet_uploads
from allranks.catalog.declared_ports import PARAMETERS
from allranks.catalog.releases import DIGEST, ENVIRONMENT, Release
from allranks.catalog.variants import as_yaml
from allranks.errors import InputError, Problem
from allranks.sdk import internals
from allranks.sdk.session import quiet

_CONCURRENCY = 4
"""Concurrent requests. The service responds in about 0.2 s and limits the requests per minute."""
_ENVIRONMENT_KEYS = ("name", "version", "description", "tags", "image", "conda_file")
"""The keys of an environment's spec to compare."""


@dataclass(frozen=True)
class Registered:
    """A version of an asset, as the service returns it."""

    version: str
    spec: dict[str, Any]
    properties: dict[str, str]


def _version(client: Any, kind: str, name: str, version: str) -> Registered | None:
    from azure.core.exceptions import ResourceNotFoundError  # takes 0.1 s to import

    try:
        if kind == ENVIRONMENT:
            asset = client.environments.get(name, version)
            spec, found = {key: getattr(asset, key) for key in _ENVIRONMENT_KEYS}, asset.properties
        else:
            asset = internals.component_version(client, name, version)
            spec, found = dict(asset.properties.component_spec), asset.properties.properties
    except ResourceNotFoundError:
        return None
    return Registered(str(spec.get("version") or asset.name), spec, dict(found or {}))


def _latest(client: Any, kind: str, name: str) -> Registered | None:
    """Return the version of an asset that was registered last; None if it has no version."""
    from azure.core.exceptions import ResourceNotFoundError  # takes 0.1 s to import

    operations = client.environments if kind == ENVIRONMENT else client.components
    try:
        # The service returns versions in no particular order.
        assets = list(operations.list(name=name))
    except ResourceNotFoundError:
        return None
    versions = [(str(asset.creation_context.created_at), str(asset.version)) for asset in assets]
    return _version(client, kind, name, max(versions)[1]) if versions else None


@dataclass(frozen=True)
class Difference:
    """The changes that registering a release would make.

    latest: the version that was registered last; "" if there is none
    spec:   the lines of a unified diff between its spec and the release's
    """

    release: Release
    latest: str
    spec: tuple[str, ...]


def missing(client: Any, releases: Sequence[Release]) -> tuple[Release, ...]:
    """Return the releases that are not registered, in order. Each is looked up once, by its version.

    client: the SDK's MLClient

    Raise InputError if a version is registered with different content, and the errors of `service_errors`.
    """
    with service_errors("asking what is registered"), quiet(), ThreadPoolExecutor(_CONCURRENCY) as pool:
        registered = list(pool.map(lambda each: _version(client, each.kind, each.name, each.version), releases))
    found, fix = "this version is registered with other content", "raise the version in the spec"
    problems = [
        Problem(str(release), found, "", fix, code="version-taken")
        for release, existing in zip(releases, registered, strict=True)
        if existing is not None and existing.properties.get(DIGEST, release.digest) != release.digest
    ]
    if problems:
        raise InputError.of(problems)
    return tuple(release for release, existing in zip(releases, registered, strict=True) if existing is None)


def register(
    client: Any, releases: Sequence[Release], staged: Path, done: Callable[[Release], None] = lambda _: None
) -> None:
    """Register the releases in order. If one fails, the earlier ones stay registered, and the next call continues.

    staged: the folder that contains the releases
    done:   is called with each release after it is registered
    """
    for position, release in enumerate(releases):
        rest = len(releases) - position - 1
        fix = f"correct it, then run the command again: it continues with this one and {rest} more"
        with service_errors(f"registering {release}", fix), quiet(), quiet_uploads():
            _create(client, release, staged)
        done(release)


def differences(client: Any, releases: Sequence[Release]) -> tuple[Difference, ...]:
    """Return the changes of registering the releases that are `missing`, compared to the last registered versions."""
    releases = missing(client, releases)
    with service_errors("asking what is registered"), quiet(), ThreadPoolExecutor(_CONCURRENCY) as pool:
        return tuple(pool.map(lambda release: _difference(client, release), releases))


def _create(client: Any, release: Release, staged: Path) -> None:
    is_environment = release.kind == ENVIRONMENT
    load = internals.load_environment if is_environment else internals.load_component
    asset: Any = load(staged / release.yaml)
    asset.properties = {**(asset.properties or {}), DIGEST: release.digest}
    (client.environments if is_environment else client.components).create_or_update(asset)


def _difference(client: Any, release: Release) -> Difference:
    latest = _latest(client, release.kind, release.name)
    if latest is None:
        return Difference(release, "", ())
    before, now = _comparable(latest.spec), _comparable(_as_sent(release))
    lines = difflib.unified_diff(
        as_yaml(before).splitlines(), as_yaml(now).splitlines(), latest.version, release.version, lineterm="", n=1
    )
    return Difference(release, latest.version, tuple(lines))


def _as_sent(release: Release) -> dict[str, Any]:
    """Return a release's spec in the service's form, so that only real differences remain."""
    return {key: release.spec.get(key) for key in (_ENVIRONMENT_KEYS if release.kind == ENVIRONMENT else release.spec)}


_NUMBER = re.compile(r"-?\d+\.0")
_NOT_COMPARED = (
    *("properties", "$schema", "schema", "_source", "code", "type", "id"),
    *("creation_context", "is_archived", "is_anonymous"),
    # The service does not return these, except for the number of instances in a command's resources.
    *("jobs", "data_copy_mode", "resources"),
)


def _comparable(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a spec in the form of the service: without the keys that it adds or drops, with its defaults, and with all
    values as strings.

    Keys are sorted, except the names of ports, which keep the designer's order: data before parameters.
    """
    compared = {key: value for key, value in spec.items() if key not in _NOT_COMPARED}
    if isinstance(compared.get("environment"), str):
        compared["environment"] = _short_reference(compared["environment"])
    if "command" in compared:
        count = (spec.get("resources") or {}).get("instance_count", 1)
        compared["resources"] = {"instance_count": count}
        compared.setdefault("is_deterministic", True)
    if distribution := compared.get("distribution"):
        compared["distribution"] = {**distribution, "type": str(distribution.get("type")).lower()}
    inputs = sorted((compared.pop("inputs", None) or {}).items(), key=lambda port: port[1].get("type") in PARAMETERS)
    outputs = (compared.pop("outputs", None) or {}).items()
    ports = {
        "inputs": {name: _as_text({"optional": False, **port}) for name, port in inputs},
        "outputs": {name: _as_text(port) for name, port in outputs},
    }
    return dict(sorted({**_as_text(compared), **{key: side for key, side in ports.items() if side}}.items()))


def _as_text(value: Any) -> Any:
    if isinstance(value, dict):
        present = {str(key): inner for key, inner in value.items() if inner not in (None, {}, [])}
        return {key: _as_text(inner) for key, inner in sorted(present.items())}
    if isinstance(value, (list, tuple)):
        return [_as_text(inner) for inner in value]
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value == int(value):
        return str(int(value))
    text = " ".join(str(value).split())
    return text.removesuffix(".0") if _NUMBER.fullmatch(text) else text.lower() if text in ("True", "False") else text


def _short_reference(reference: str) -> str:
    """Return azureml:NAME:VERSION for any form of a reference that the service uses."""
    parts = reference.removeprefix("azureml:").strip("/").split("/")
    if "environments" in parts and "versions" in parts:
        return f"azureml:{parts[parts.index('environments') + 1]}:{parts[parts.index('versions') + 1]}"
    return reference
