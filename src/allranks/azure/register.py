"""Register environments and components that the workspace does not have yet."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from allranks.azure.errors import service_errors
from allranks.azure.workspace import quiet_uploads
from allranks.catalog.releases import DIGEST, ENVIRONMENT, Release
from allranks.errors import Problem, raise_any
from allranks.sdk import internals
from allranks.sdk.session import quiet

_CONCURRENCY = 4
"""Concurrent requests. The service responds in about 0.2 s and limits the requests per minute."""


def missing(client: Any, releases: Sequence[Release]) -> tuple[Release, ...]:
    """Return the releases that are not registered, in order. Each is looked up once, by its version.

    client: the SDK's MLClient

    Raise InputError if a version is registered with different content, and the errors of `service_errors`.
    """
    with service_errors("asking what is registered"), quiet(), ThreadPoolExecutor(_CONCURRENCY) as pool:
        digests = list(pool.map(lambda release: _registered_digest(client, release), releases))
    found, fix = "this version is registered with other content", "raise the version in the spec"
    raise_any(
        Problem(str(release), found, "", fix, code="version-taken")
        for release, digest in zip(releases, digests, strict=True)
        if digest not in (None, release.digest)
    )
    return tuple(release for release, digest in zip(releases, digests, strict=True) if digest is None)


def register(client: Any, releases: Sequence[Release], staged: Path) -> Iterator[Release]:
    """Register the releases in order, and yield each one when that is done. If one fails, the earlier ones stay
    registered, and the next call continues.

    staged: the folder that contains the releases
    """
    for position, release in enumerate(releases):
        rest = len(releases) - position - 1
        fix = f"correct it, then run the command again: it continues with this one and {rest} more"
        with service_errors(f"registering {release}", fix), quiet(), quiet_uploads():
            _create(client, release, staged)
        yield release


def latest_versions(client: Any, releases: Sequence[Release]) -> dict[str, str]:
    """Return the version of each asset that was registered last, by the release as text; "" if there is none."""
    with service_errors("asking what is registered"), quiet(), ThreadPoolExecutor(_CONCURRENCY) as pool:
        return dict(zip(map(str, releases), pool.map(lambda release: _latest(client, release), releases), strict=True))


def _registered_digest(client: Any, release: Release) -> str | None:
    """Return the digest of a release's version as registered, or the release's own if that has none; None if the
    version is not registered."""
    try:
        if release.kind == ENVIRONMENT:
            properties = client.environments.get(release.name, release.version).properties
        else:
            properties = internals.component_version(client, release.name, release.version).properties.properties
    except internals.ResourceNotFoundError:
        return None
    return str((properties or {}).get(DIGEST, release.digest))


def _latest(client: Any, release: Release) -> str:
    operations = client.environments if release.kind == ENVIRONMENT else client.components
    try:
        # The service returns versions in no particular order.
        assets = list(operations.list(name=release.name))
    except internals.ResourceNotFoundError:
        return ""
    return max(((str(asset.creation_context.created_at), str(asset.version)) for asset in assets), default=("", ""))[1]


def _create(client: Any, release: Release, staged: Path) -> None:
    is_environment = release.kind == ENVIRONMENT
    load = internals.load_environment if is_environment else internals.load_component
    asset: Any = load(staged / release.yaml)
    asset.properties = {**(asset.properties or {}), DIGEST: release.digest}
    (client.environments if is_environment else client.components).create_or_update(asset)
