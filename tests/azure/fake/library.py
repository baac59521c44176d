"""The service's assets for who reads REST bodies: bodies as they are stored, and files written into a folder."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allranks.errors import InputError, Problem
from allranks_client.messages import Refusal
from fake import references, uploads
from fake.workspaces import DATASTORES, find_datastore_path

if TYPE_CHECKING:
    from fake.service import FakeAzure


class Library:
    """folder: where files are written, below a name for each place they are from"""

    def __init__(self, azure: FakeAzure, folder: Path) -> None:
        self._azure, self._folder = azure, folder

    def component(self, identity: str) -> Mapping[str, Any]:
        return self._body(identity, "components")

    def environment(self, identity: str) -> Mapping[str, Any]:
        return self._body(identity, "environments")

    def code(self, identity: str) -> Path:
        return self._files(*uploads.place(self._body(identity, "codes")["properties"]["codeUri"]))

    def build_context(self, uri: str) -> Path:
        return self._files(*uploads.place(uri))

    def data(self, uri: str) -> str:
        if found := references.parse(uri):
            uri = self._body(uri, found.kind)["properties"].get("dataUri" if found.kind == "data" else "modelUri")
        place = find_datastore_path(uri)
        if place is None or place[0] not in DATASTORES:
            return uri
        return str(self._files(DATASTORES[place[0]], place[1].rstrip("/")))

    def _body(self, identity: str, kind: str) -> Mapping[str, Any]:
        found = references.parse(identity)
        if found is None or found.kind != kind:
            raise InputError(Problem(identity, f"it is no id of {kind}"))
        assets = self._azure.registry if found.registry else self._azure.assets
        try:
            if found.by_label:
                return assets.versions(kind, found.name)[0]
            return assets.get(kind, found.name, found.version)
        except Refusal as refusal:
            raise InputError(Problem(identity, refusal.message)) from None

    def _files(self, container: str, prefix: str) -> Path:
        folder = self._folder / hashlib.sha256(f"{container}/{prefix}".encode()).hexdigest()[:16]
        written = folder / Path(prefix).name
        if not written.exists():
            if not self._azure.blobs.below(container, prefix):
                raise InputError(Problem(f"{container}/{prefix}", "nothing was uploaded there"))
            self._azure.blobs.copy(container, prefix, folder)
        return written
