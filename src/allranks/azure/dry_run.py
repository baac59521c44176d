"""Build the request that would submit a job, without contacting Azure.

azure-ai-ml builds the request. This module replaces Azure's responses, so that every asset exists and nothing is sent.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import uuid
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from allranks.azure.errors import service_errors
from allranks.azure.workspace import WorkspaceName
from allranks.sdk import internals
from allranks.sdk.offline_client import Credential
from allranks.sdk.session import entry

NO_COMPUTE = "COMPUTE_NAME"
"""Placeholder for the compute of steps without one."""

_NO_CACHE = "AZURE_ML_DISABLE_ON_DISK_CACHE"
"""Disables the SDK's on-disk cache of registered components."""
_JOBS = "/jobs/"


def body_of(job: Any, workspace: WorkspaceName) -> dict[str, Any]:
    """Return the body of the PUT that would submit the SDK's job to the workspace.

    Ids are derived from content. Only the service knows two values: the version behind a label such as
    ``azureml:NAME@latest``, which stays a label; and the name that the service generates when code is first uploaded,
    on which the versions of components with that code depend. These versions differ, but are equal for equal content.
    Raise InputError if the SDK rejects the job.
    """
    service = _OfflineTransport()
    options = {"transport": service, "show_progress": False, "enable_telemetry": False}
    client = internals.MLClient(Credential(), *astuple(workspace), **options)
    with service_errors("compiling the job"), entry(os.environ, _NO_CACHE, "true"), _nothing_uploaded():
        client.jobs.create_or_update(job)
    return service.job


class _OfflineTransport(contextlib.AbstractContextManager["_OfflineTransport"]):
    """An azure-core transport that sends nothing. It answers a request for an asset with that asset.

    job: the body of the submitted job
    """

    def __init__(self) -> None:
        self.job: dict[str, Any] = {}
        self._lock = threading.Lock()

    def __exit__(self, *_: object) -> None:
        return None

    def open(self) -> None:
        return None

    def close(self) -> None:
        return None

    def send(self, request: Any, **_: Any) -> Any:
        address = urlsplit(request.url)
        path, query = unquote(address.path), dict(parse_qsl(address.query))
        content = getattr(request, "content", None) or getattr(request, "body", None)
        body = json.loads(content) if content else {}
        if request.method == "PUT" and _JOBS in path:
            with self._lock:
                self.job = body
        return internals.rest_response(request, json.dumps(_answer(request.method, path, query, body)).encode())


def _answer(method: str, path: str, query: dict[str, str], body: dict[str, Any]) -> dict[str, Any]:
    if method == "GET" and path.endswith("/versions"):
        # Code is requested by its content, other assets by a label, which becomes the version.
        kind, code, _ = path.partition("/codes/")
        # The service generates a name when code is first uploaded. Here, equal code has an equal name.
        name = uuid.uuid5(uuid.NAMESPACE_OID, query.get("hash", ""))
        asset_path = f"{kind}{code}{name}/versions/1" if code else f"{path}/latest"
        return {"value": [_resource(asset_path, {})]}
    return _resource(path, {} if method == "GET" else body)


def _resource(path: str, body: dict[str, Any]) -> dict[str, Any]:
    kind, name = path.split("/")[-4], path.rpartition("/")[2]
    properties: dict[str, Any] = {}
    if kind == "codes":
        properties = {"codeUri": "https://account.blob.core.windows.net/container/code"}
    elif kind == "components":
        specification = {"name": path.split("/")[-3], "version": name, "type": "command"}
        specification |= {"command": "-", "environment": "azureml:environment:1"}
        properties = {"componentSpec": specification, "isAnonymous": False}
    return {"location": "", "properties": properties, **body, "id": path, "name": name, "type": "thing"}


@contextlib.contextmanager
def _nothing_uploaded() -> Iterator[None]:
    """Disable uploads. The SDK uploads local data and build contexts with another client."""
    utilities = internals.artifacts

    def uploaded(
        local_path: str, _: Any, scope: Any, datastore: str | None, asset_hash: str | None = None, **more: Any
    ) -> Any:
        path = Path(local_path)
        return utilities.ArtifactStorageInfo(
            name=more.get("asset_name") or asset_hash,
            version=more.get("asset_version") or "1",
            relative_path=f"LocalUpload/{asset_hash}/{path.name}",
            datastore_arm_id=internals.datastore_id(datastore, scope),
            container_name="CONTAINER",
            storage_account_url="https://ACCOUNT.blob.core.windows.net",
            is_file=path.is_file(),
        )

    with internals.replaced(utilities, "upload_artifact", uploaded):
        yield
