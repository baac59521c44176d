"""Whether what an asset points to was uploaded before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from allranks_client.messages import user_error

if TYPE_CHECKING:
    from fake.service import FakeAzure


def place(uri: str) -> tuple[str, str]:
    """The container and the prefix of blobs that a URI names."""
    container, _, prefix = unquote(urlsplit(uri).path).lstrip("/").partition("/")
    return container, prefix.rstrip("/")


def check_upload(azure: FakeAzure, properties: dict[str, Any]) -> None:
    """Raises Refusal where a code asset names blobs that are not there."""
    uri = properties.get("codeUri") or ""
    container, prefix = place(uri)
    if not azure.blobs.below(container, prefix):
        raise user_error(f"The code at {uri} does not exist or is empty.")
