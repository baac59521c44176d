"""Blob storage: one account, its containers, blobs in memory. What a key or a SAS is good for is not checked."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import TYPE_CHECKING
from urllib.parse import quote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from allranks_client.messages import Answer, Refusal, Request
from fake.names import BLOBS, STORAGE
from fake.routing import route

if TYPE_CHECKING:
    from fake.service import FakeAzure


@dataclass
class Blob:
    content: bytes
    metadata: dict[str, str] = field(default_factory=dict)
    modified: str = field(default_factory=lambda: formatdate(usegmt=True))

    @property
    def etag(self) -> str:
        return f'"0x{hashlib.sha1(self.modified.encode() + self.content).hexdigest()[:15].upper()}"'


class Blobs:
    """handed_out: where each SAS and key is noted"""

    def __init__(self, handed_out: set[str]) -> None:
        self.containers: dict[str, dict[str, Blob]] = {}
        self.blocks: dict[tuple[str, str], dict[str, bytes]] = {}
        self.key = base64.b64encode(secrets.token_bytes(64)).decode()
        self._handed_out = handed_out
        handed_out.add(self.key)

    def sas(self) -> str:
        signature = secrets.token_urlsafe(32)
        self._handed_out.add(signature)
        return f"sv=2023-11-03&sp=racwl&sig={signature}"

    def container(self, name: str) -> dict[str, Blob]:
        return self.containers.setdefault(name, {})


def _check(azure: FakeAzure, request: Request) -> None:
    """Raises Refusal without a SAS, a token for storage, or a signature by the account's key."""
    kind, _, given = request.headers.get("authorization", "").partition(" ")
    if signature := request.query.get("sig"):  # a client that has the key makes SAS of its own
        azure.secrets.update((signature, quote(signature, safe="")))
    elif kind != "SharedKey" and azure.tokens.get(given) != STORAGE:
        raise Refusal(403, "AuthenticationFailed", "Server failed to authenticate the request.")


def _blob(azure: FakeAzure, container: str, name: str) -> Blob:
    blob = azure.blobs.container(container).get(name)
    if blob is None:
        raise Refusal(404, "BlobNotFound", "The specified blob does not exist.")
    return blob


def _headers(blob: Blob) -> dict[str, str]:
    return {
        "ETag": blob.etag,
        "Last-Modified": blob.modified,
        "x-ms-creation-time": blob.modified,
        "x-ms-blob-type": "BlockBlob",
        "x-ms-version": "2023-11-03",
        "x-ms-request-server-encrypted": "true",
        "Content-Type": "application/octet-stream",
        "Accept-Ranges": "bytes",
        **{f"x-ms-meta-{name}": value for name, value in blob.metadata.items()},
    }


@route(BLOBS, "HEAD", "/{container}/{name:path}", signed=False)
def head(azure: FakeAzure, request: Request, container: str, name: str) -> Answer:
    _check(azure, request)
    blob = _blob(azure, container, name)
    return Answer(200, b"", {**_headers(blob), "Content-Length": str(len(blob.content))})


@route(BLOBS, "GET", "/{container}/{name:path}", signed=False)
def get(azure: FakeAzure, request: Request, container: str, name: str) -> Answer:
    _check(azure, request)
    blob = _blob(azure, container, name)
    content = blob.content
    wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("x-ms-range") or request.headers.get("range") or "")
    if not wanted:
        return Answer(200, content, _headers(blob))
    start = int(wanted[1])
    if start >= len(content):
        raise Refusal(
            416, "InvalidRange", "The range specified is invalid.", {"Content-Range": f"bytes */{len(content)}"}
        )
    end = min(int(wanted[2] or len(content)), len(content) - 1)
    ranged = {"Content-Range": f"bytes {start}-{end}/{len(content)}"}
    return Answer(206, content[start : end + 1], {**_headers(blob), **ranged})


@route(BLOBS, "PUT", "/{container}/{name:path}", signed=False)
def put(azure: FakeAzure, request: Request, container: str, name: str) -> Answer:
    _check(azure, request)
    operation = request.query.get("comp")
    blobs = azure.blobs.container(container)
    metadata = {key[10:]: value for key, value in request.headers.items() if key.startswith("x-ms-meta-")}
    if operation == "block":
        azure.blobs.blocks.setdefault((container, name), {})[request.query["blockid"]] = request.body
        return Answer(201)
    if operation == "metadata":
        _blob(azure, container, name).metadata = metadata
    elif operation in (None, "blocklist"):
        if request.headers.get("if-none-match") == "*" and name in blobs:
            raise Refusal(409, "BlobAlreadyExists", "The specified blob already exists.")
        content = request.body if operation is None else _joined(azure, container, name, request.body)
        blobs[name] = Blob(content, metadata)
    else:
        raise Refusal(400, "UnsupportedOperation", f"The fake's storage has no operation {operation}.")
    return Answer(201 if operation != "metadata" else 200, b"", _headers(blobs[name]) | {"Content-Type": "text/plain"})


def _joined(azure: FakeAzure, container: str, name: str, body: bytes) -> bytes:
    blocks = azure.blobs.blocks.pop((container, name), {})
    return b"".join(blocks[element.text or ""] for element in ElementTree.fromstring(body))


@route(BLOBS, "GET", "/{container}", "/{container}/", signed=False)
def list_blobs(azure: FakeAzure, request: Request, container: str) -> Answer:
    _check(azure, request)
    prefix, delimiter = request.query.get("prefix", ""), request.query.get("delimiter", "")
    entries: dict[str, str] = {}
    for name, blob in sorted(azure.blobs.container(container).items()):
        if not name.startswith(prefix):
            continue
        folder, found, _ = name[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
        if found:
            inner = f"{prefix}{folder}{delimiter}"
            entries[inner] = f"<BlobPrefix><Name>{escape(inner)}</Name></BlobPrefix>"
        else:
            entries[name] = _entry(name, blob, with_metadata="metadata" in request.query.get("include", ""))
    marker, size = request.query.get("marker", ""), int(request.query.get("maxresults", azure.page_size))
    rest = [name for name in entries if name > marker]
    shown = rest[:size]
    listed, following = "".join(entries[name] for name in shown), escape(shown[-1]) if len(rest) > size else ""
    body = (
        f'<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="https://{BLOBS}/" '
        f'ContainerName="{container}"><Prefix>{escape(prefix)}</Prefix><Blobs>{listed}</Blobs>'
        f"<NextMarker>{following}</NextMarker></EnumerationResults>"
    )
    return Answer(200, body.encode(), {"Content-Type": "application/xml"})


def _entry(name: str, blob: Blob, with_metadata: bool) -> str:
    items = "".join(f"<{key}>{escape(value)}</{key}>" for key, value in blob.metadata.items())
    metadata = f"<Metadata>{items}</Metadata>" if with_metadata else ""
    return (
        f"<Blob><Name>{escape(name)}</Name><Properties><Last-Modified>{blob.modified}</Last-Modified>"
        f"<Etag>{escape(blob.etag)}</Etag><Content-Length>{len(blob.content)}</Content-Length>"
        "<Content-Type>application/octet-stream</Content-Type><BlobType>BlockBlob</BlobType></Properties>"
        f"{metadata}</Blob>"
    )
