"""Azurite, the emulator of Azure Storage, in the place of the fake's own storage: it answers the client, and the fake,
which computes its own answer to each request too, has to give the same.

`make azurite` installs it where npm is; see https://github.com/Azure/Azurite. It serves plain HTTP on loopback, where
it takes no tokens: a request with a token that the fake accepts goes on with a SAS for the account.
"""

from __future__ import annotations

import base64
import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlencode
from xml.etree import ElementTree

import bounded
from allranks_client.messages import Answer, Refusal, Request
from fake import routing
from fake.blobs import Blob
from fake.names import ACCOUNT, BLOBS

if TYPE_CHECKING:
    from fake.service import FakeAzure

_PROGRAM = Path(__file__).parents[3] / ".azurite/node_modules/azurite/dist/src/blob/main.js"
_LISTENS = "successfully listens on"
# The SDK may speak a newer version than Azurite knows. Without the last one it reports to Microsoft how it is used.
_OPTIONS = (
    *("--blobHost", "127.0.0.1", "--blobPort", "0", "--inMemoryPersistence", "--silent"),
    *("--skipApiVersionCheck", "--disableTelemetry"),
)

_DEPARTURES = (
    # "Status and error codes" of the REST reference has no such code for a signature that is wrong.
    ((403, "AuthorizationFailure"), (403, "AuthenticationFailed")),
    # RFC 9110 and "Specifying the range header for Blob Storage operations": no byte of the range exists.
    ((206, ""), (416, "InvalidRange")),
)
"""Where Azurite departs from Azure Storage: its status and code, and those of Azure, which the client gets."""

_OF_A_SAS = ("sv", "ss", "srt", "sr", "sp", "st", "se", "sig")

_COMPARED = ("content-length", "content-range", "x-ms-blob-type", "x-ms-error-code", "x-ms-meta-")
"""The beginnings of the headers that the SDK reads."""


def missing() -> str | None:
    """What is not there to start it; None if it can be started."""
    if not _PROGRAM.exists():
        return "Azurite is not installed: make azurite"
    return None if shutil.which("node") else "there is no node"


@dataclass(frozen=True)
class Process:
    """What runs, and the key of its account."""

    port: int
    key: str


@contextmanager
def running() -> Iterator[Process]:
    """Starts it on a free port. It is gone at the end, and stores nothing on disk."""
    key = base64.b64encode(secrets.token_bytes(64)).decode()
    environment = {**os.environ, "AZURITE_ACCOUNTS": f"{ACCOUNT}:{key}"}
    with tempfile.TemporaryDirectory(prefix="allranks-azurite-") as folder:
        process = bounded.Popen(
            ["node", str(_PROGRAM), *_OPTIONS], env=environment, cwd=folder, stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        try:
            address = next((line for line in process.stdout if _LISTENS in line), "")
            assert address, "Azurite does not start"
            yield Process(int(address.strip().rpartition(":")[2]), key)
        finally:
            process.kill()
            process.communicate()


@contextmanager
def serving(azure: FakeAzure, process: Process) -> Iterator[None]:
    """Lets it serve the storage of a service, which is empty before and afterwards. Raises AssertionError at the end
    where the fake's own storage has once answered otherwise."""
    azure.blobs.signatures.use(process.key)
    azure.azurite = Azurite(azure, process)
    try:
        yield
    finally:
        azure.azurite.clear()
    assert not azure.azurite.differences, "\n".join(azure.azurite.differences)


class Azurite:
    """differences: where the fake would have answered otherwise"""

    def __init__(self, azure: FakeAzure, process: Process) -> None:
        self.differences: list[str] = []
        self._azure, self._process = azure, process
        self._containers: set[str] = set()
        self._stored: dict[tuple[str, str], str] = {}

    def answer(self, request: Request) -> Answer:
        """What Azurite says to a request that a client has sent to storage."""
        container, _, name = request.path.lstrip("/").partition("/")
        self._store(container)
        known = self._tags(container)
        own = _answered(self._azure, request)
        theirs = self._forward(*self._admitted(request, own))
        tags = self._tags(container)
        if request.method == "PUT" and name in tags:
            self._stored[container, name] = tags[name]
        if (_status_and_code(theirs), _status_and_code(own)) in _DEPARTURES:
            return own
        # A log may have grown between the two answers.
        if request.method == "PUT" or known == tags:
            self.differences += _differences(request, own, theirs)
        return theirs

    def _store(self, container: str) -> None:
        """Puts into Azurite what the fake's service has written by itself: logs and outputs of steps."""
        if container not in self._containers:
            self._ask("PUT", f"/{container}?restype=container", 201)
            self._containers.add(container)
        for name, tag in self._tags(container).items():
            if self._stored.get((container, name)) != tag:
                blob = self._azure.blobs.container(container)[name]
                headers = {f"x-ms-meta-{key}": value for key, value in blob.metadata.items()}
                headers["x-ms-blob-type"] = "BlockBlob"
                self._ask("PUT", f"/{container}/{quote(name)}", 201, blob.read(), headers)
                self._stored[container, name] = tag

    def _tags(self, container: str) -> dict[str, str]:
        return {name: blob.etag for name, blob in self._azure.blobs.container(container).items() if _exists(blob)}

    def clear(self) -> None:
        """Removes what is stored."""
        for container in self._containers:
            self._ask("DELETE", f"/{container}?restype=container", 202)

    def _ask(
        self, method: str, target: str, status: int, body: bytes = b"", headers: Mapping[str, str] | None = None
    ) -> None:
        request = Request(method, BLOBS, "", {}, {**(headers or {}), "content-length": str(len(body))}, body, target)
        answer = self._forward(request, self._account_sas())
        assert answer.status == status, f"{method} {target}: {answer}"

    def _admitted(self, request: Request, own: Answer) -> tuple[Request, str]:
        """The request as Azurite can take it, with a SAS where the client's own proof does not do: for a token, which
        the fake has accepted, and for a list, since the fake's page size is not a part of what the client signed."""
        if own.status == 403:
            return request, ""
        if request.query.get("comp") == "list" and "maxresults" not in request.query:
            query = {name: value for name, value in request.query.items() if name not in _OF_A_SAS}
            path = request.target.partition("?")[0]
            paged = urlencode({**query, "maxresults": self._azure.page_size})
            return replace(request, target=f"{path}?{paged}"), self._account_sas()
        with_token = request.headers.get("authorization", "").startswith("Bearer")
        return request, self._account_sas() if with_token else ""

    def _account_sas(self) -> str:
        from azure.storage.blob import generate_account_sas

        expiry = datetime.now(timezone.utc) + timedelta(hours=1)
        return generate_account_sas(ACCOUNT, self._process.key, "sco", "rwdlac", expiry)

    def _forward(self, request: Request, sas: str) -> Answer:
        target = f"{request.target}{'&' if '?' in request.target else '?'}{sas}" if sas else request.target
        left_out = {"connection", "authorization"} if sas else {"connection"}
        headers = {name: value for name, value in request.headers.items() if name not in left_out} | {"host": BLOBS}
        connection = HTTPConnection("127.0.0.1", self._process.port)
        try:
            connection.request(request.method, target, request.body, headers)
            response = connection.getresponse()
            body = response.read()
        finally:
            connection.close()
        hop_by_hop = ("Connection", "Keep-Alive", "Transfer-Encoding")
        spelled = {name.title(): value for name, value in response.getheaders()}
        kept = {name: value for name, value in spelled.items() if name not in hop_by_hop}
        return Answer(response.status, body, kept)


def _status_and_code(answer: Answer) -> tuple[int, str]:
    empty = answer.status == 206 and not answer.body
    return answer.status, _headers(answer).get("x-ms-error-code", "") if answer.status >= 300 or empty else "content"


def _exists(blob: Blob) -> bool:
    return not isinstance(blob.content, Path) or blob.content.exists()


def _answered(azure: FakeAzure, request: Request) -> Answer:
    try:
        return routing.answer(azure, request)
    except Refusal as refusal:
        return refusal.answer(request.host)


def _differences(request: Request, own: Answer, theirs: Answer) -> Iterator[str]:
    where = f"{request.method} {request.target.partition('?')[0]}"
    if own.status != theirs.status:
        yield f"{where}: {theirs.status} {_headers(theirs)}, by the fake {own.status} {_headers(own)}"
    elif theirs.status >= 300:
        if _headers(own).get("x-ms-error-code") != _headers(theirs).get("x-ms-error-code"):
            yield f"{where}: {_headers(theirs)}, by the fake {_headers(own)}"
    elif request.query.get("comp") == "list":
        if (listed := _listed(own)) != (expected := _listed(theirs)):
            yield f"{where}: {expected}, by the fake {listed}"
    elif request.method in ("GET", "HEAD"):
        if _headers(own) != _headers(theirs):
            yield f"{where}: {_headers(theirs)}, by the fake {_headers(own)}"
        if own.body != theirs.body:
            yield f"{where}: its content differs"


def _headers(answer: Answer) -> dict[str, str]:
    lower = {name.lower(): value for name, value in answer.headers.items()}
    if isinstance(answer.body, bytes):
        lower.setdefault("content-length", str(len(answer.body)))
    return {name: value for name, value in sorted(lower.items()) if name.startswith(_COMPARED)}


def _listed(answer: Answer) -> tuple[str, ...]:
    """What a list contains: blobs and folders by name, with sizes and metadata, and the marker of the next page."""
    assert isinstance(answer.body, bytes)
    found = ElementTree.fromstring(answer.body)
    fields = ("Name", "Properties/Content-Length", "Metadata/*")
    texts = [[item for field in fields for item in each.findall(field)] for each in found.findall("Blobs/*")]
    items = (", ".join(f"{item.tag} {item.text}" for item in each) for each in texts)
    return (*items, f"next {found.findtext('NextMarker') or ''}")
