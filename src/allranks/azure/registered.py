"""What is registered in a workspace or a registry: as the service answers, or as it was last seen."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, Protocol

from allranks.azure.last_state import LastState
from allranks.components.releases import ENVIRONMENT
from allranks.components.stamps import DIGEST
from allranks.sdk import internals


@dataclass(frozen=True)
class Registered:
    """A version of an asset. spec: None if only its digest is known"""

    version: str
    spec: dict[str, Any] | None
    properties: dict[str, str]


class Registry(Protocol):
    """Looks assets up."""

    def version(self, kind: str, name: str, version: str) -> Registered | None:
        """Return a version of an asset; None if it is not registered."""

    def latest(self, kind: str, name: str) -> Registered | None:
        """Return the version that was registered last; None if there is none."""


@dataclass
class ServiceRegistry:
    """Asks the service, and notes its answers in the last known state.

    client: the SDK's MLClient
    """

    client: Any
    state: LastState

    def version(self, kind: str, name: str, version: str) -> Registered | None:
        from azure.core.exceptions import ResourceNotFoundError

        try:
            if kind == ENVIRONMENT:
                found = _of_environment(self.client.environments.get(name, version))
            else:
                found = _of_component(internals.component_version(self.client, name, version))
        except ResourceNotFoundError:
            return None
        KnownRegistry(self.state).note(kind, name, found, latest=False)
        return found

    def latest(self, kind: str, name: str) -> Registered | None:
        from azure.core.exceptions import ResourceNotFoundError

        operations = self.client.environments if kind == ENVIRONMENT else self.client.components
        try:
            # Versions have no order of their own.
            assets = list(operations.list(name=name))
        except ResourceNotFoundError:
            assets = []
        versions = [(str(asset.creation_context.created_at), str(asset.version)) for asset in assets]
        found = self.version(kind, name, max(versions)[1]) if versions else None
        KnownRegistry(self.state).note(kind, name, found, latest=True)
        return found


@dataclass
class KnownRegistry:
    """Answers from the last known state, without contacting Azure.

    used: the times at which the answers were known, in seconds since the epoch
    """

    state: LastState
    used: list[float] = field(default_factory=list)

    def version(self, kind: str, name: str, version: str) -> Registered | None:
        asset = self._asset(kind, name)
        digest = asset.get("versions", {}).get(version)
        if digest is None:
            return None
        latest = asset.get("latest") or {}
        if latest.get("version") == version:
            return Registered(version, latest["spec"], latest["properties"])
        return Registered(version, None, {DIGEST: digest} if digest else {})

    def latest(self, kind: str, name: str) -> Registered | None:
        latest = self._asset(kind, name).get("latest")
        return Registered(**latest) if latest else None

    def note(self, kind: str, name: str, found: Registered | None, *, latest: bool) -> None:
        """Add an answer to the state. found: None if the asset has no version; latest: whether it is the last one"""
        asset = self.state.assets.setdefault(f"{kind} {name}", {"versions": {}, "latest": None})
        asset["seen"] = time.time()
        if found is None:
            asset["versions"], asset["latest"] = {}, None
        else:
            asset["versions"][found.version] = found.properties.get(DIGEST, "")
            if latest or asset["latest"] is None or asset["latest"]["version"] == found.version:
                asset["latest"] = {"version": found.version, "spec": found.spec, "properties": found.properties}

    def _asset(self, kind: str, name: str) -> dict[str, Any]:
        asset = self.state.assets.get(f"{kind} {name}", {})
        if asset:
            self.used.append(float(asset["seen"]))
        return asset


def _of_environment(environment: Any) -> Registered:
    keys = ("name", "version", "description", "tags", "image", "conda_file")
    spec = {key: getattr(environment, key) for key in keys}
    return Registered(str(environment.version), spec, dict(environment.properties or {}))


def _of_component(component: Any) -> Registered:
    spec = dict(component.properties.component_spec)
    return Registered(str(spec.get("version") or component.name), spec, dict(component.properties.properties or {}))
