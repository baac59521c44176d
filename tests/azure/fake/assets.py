"""The assets of the fake service, in memory, and what it checks before it stores one."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from allranks_client import assets
from fake.references import check_reference, parse

if TYPE_CHECKING:
    from fake.service import FakeAzure


class Assets(assets.Assets):
    """What the workspace or the registry holds."""

    def __init__(self, azure: FakeAzure, scope: str) -> None:
        self.scope = scope
        self._azure = azure
        self._kinds: dict[str, dict[tuple[str, str], dict[str, Any]]] = {kind: {} for kind in assets.SINGULAR}
        self._archived: set[tuple[str, str]] = set()

    def of(self, kind: str) -> dict[tuple[str, str], dict[str, Any]]:
        """REST bodies by name and version, in the order of their making, with the properties that were sent."""
        return self._kinds[kind]

    def names(self, kind: str) -> dict[str, None]:
        return dict.fromkeys(name for name, _ in self.of(kind))

    def all(self, kind: str) -> Iterable[dict[str, Any]]:
        return self.of(kind).values()

    def find(self, kind: str, name: str, version: str = "") -> list[dict[str, Any]]:
        return [body for (other, _), body in self.of(kind).items() if other == name][::-1]

    def store(self, kind: str, name: str, body: dict[str, Any], *, is_new: bool) -> None:
        self.of(kind)[name, body["name"]] = body

    def is_archived(self, kind: str, name: str) -> bool:
        return (kind, name) in self._archived

    def archive(self, kind: str, name: str, archived: bool) -> None:
        (self._archived.add if archived else self._archived.discard)((kind, name))

    def next_version(self, kind: str, versions: list[dict[str, Any]]) -> str:
        if kind != "components":
            return super().next_version(kind, versions)
        return f"{time.strftime('%Y-%m-%d-%H-%M-%S')}-{time.time_ns() // 100 % 10**7:07}"

    def accept(self, kind: str, name: str, version: str, properties: dict[str, Any]) -> str:
        """The version; of an anonymous component one by its content, whatever was sent."""
        if kind == "components":
            spec = properties["componentSpec"]
            for identity in (spec.get("environment"), spec.get("code")):
                if isinstance(identity, str):
                    check_reference(self._azure, parse(identity))
        if kind != "components" or not properties.get("isAnonymous"):
            return version
        spec = {key: value for key, value in properties["componentSpec"].items() if key != "version"}
        return str(uuid.uuid5(uuid.NAMESPACE_OID, json.dumps(spec, sort_keys=True)))
