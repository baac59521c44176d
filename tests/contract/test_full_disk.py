"""Messages of a full disk, as programs and libraries print them."""

from __future__ import annotations

import pytest

from allranks.contract.report import tells_of_full_disk


@pytest.mark.parametrize(
    "message",
    [
        "OSError: [Errno 28] No space left on device: 'model.pt'",
        "[Errno 122] Disk quota exceeded",
        "RuntimeError: [enforce fail at inline_container.cc:672] . unexpected pos 640 vs 598",
        "[enforce fail at inline_container.cc:325] . PytorchStreamWriter failed writing file data/1: file write failed",
        "RuntimeError: write(): fd 3 failed with No space left on device",
    ],
)
def test_a_full_disk_is_recognised(message: str) -> None:
    assert tells_of_full_disk(message)


@pytest.mark.parametrize(
    "message",
    [
        "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory",
        "[Errno 13] Permission denied: 'model.pt'",
        "ValueError: unexpected pos 640 vs 598",
    ],
)
def test_other_messages_are_not(message: str) -> None:
    assert not tells_of_full_disk(message)
