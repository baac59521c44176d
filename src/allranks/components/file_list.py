"""Store the list of an asset's files in its registered properties, for comparison by a later `--dry-run`.

Azure ML limits properties to about a thousand characters, so the list is compressed and split.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from collections.abc import Mapping, Sequence

DIGEST = "allranks.digest"
_FILES = "allranks.files"
_PIECE_LENGTH = 900
_MAX_PIECES = 16
_DIGITS = 12
_MAX_TEXT_SIZE = 1 << 20


def properties(digest: str, files: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the properties. The list is omitted if it is too long.

    files: name and digest of each
    """
    text = "\n".join(f"{content[:_DIGITS]} {name}" for name, content in sorted(files))
    packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    pieces = [packed[start : start + _PIECE_LENGTH] for start in range(0, len(packed), _PIECE_LENGTH)]
    entries = {DIGEST: digest}
    if len(pieces) <= _MAX_PIECES:
        entries |= {f"{_FILES}.{number}": piece for number, piece in enumerate(pieces)}
    return entries


def files_of(properties: Mapping[str, str]) -> dict[str, str] | None:
    """Return the name and the beginning of the digest of each file; None if the properties have no valid list."""
    pieces: list[str] = []
    while (piece := properties.get(f"{_FILES}.{len(pieces)}")) is not None and len(pieces) < _MAX_PIECES:
        pieces.append(piece)
    if not pieces:
        return None
    try:
        decompressor = zlib.decompressobj()
        text = decompressor.decompress(base64.b64decode("".join(pieces), validate=True), _MAX_TEXT_SIZE).decode()
    except (binascii.Error, zlib.error, ValueError):
        return None
    if not decompressor.eof:
        return None
    lines = [line.partition(" ") for line in text.splitlines()]
    return {name: content for content, _, name in lines}


def changes(before: Mapping[str, str], files: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return each file that differs with its change: added, changed or removed."""
    now = {name: content[:_DIGITS] for name, content in files}
    return [
        (name, "added" if name not in before else "removed" if name not in now else "changed")
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]
