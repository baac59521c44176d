"""Azurite as storage: a difference to the fake's own is found, in an answer and in what is stored."""

from __future__ import annotations

import pytest
import requests
from fake import azurite
from fake.blobs import Blob
from fake.names import BLOBS
from fake.service import FakeAzure

pytestmark = [
    pytest.mark.azurite,
    pytest.mark.skipif(azurite.missing() is not None, reason=azurite.missing() or ""),
]


def test_a_difference_to_the_fake_is_found(azure: FakeAzure) -> None:
    assert azure.azurite is not None
    blob = Blob(b"content", {"key": "value"})
    azure.blobs.container("files")["blob"] = blob
    url = f"https://{BLOBS}/files/blob?{azure.blobs.signatures.sas('files', permissions='rw')}"
    assert requests.get(url, timeout=10).content == b"content"
    assert azure.azurite.differences == []
    # The same size and time: the fake does not notice that it has to store it again.
    blob.content, blob.metadata = b"another", {}
    assert requests.get(url, timeout=10).content == b"content"
    found, azure.azurite.differences = azure.azurite.differences, []
    assert [difference.partition(": ")[0] for difference in found] == ["GET /files/blob"] * 2
    del azure.blobs.container("files")["blob"]
    assert requests.get(url, timeout=10).status_code == 200
    (difference,) = azure.azurite.differences
    assert "200" in difference.partition("by the fake")[0]
    assert "404" in difference.partition("by the fake")[2]
    azure.azurite.differences = []
