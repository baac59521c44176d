"""Versions that are derived from content: equal content has one version, and every change creates another.

A version consists of the spec's own version and a digest, such as 1.2.0-3f9a1c2e. The digest covers everything that is
sent to Azure ML: the spec with its ports in order, and the name and bytes of every uploaded file. A component's spec
contains the version of its environment, so a new environment creates a new component.

The digest does not depend on times, modes, the order of files, comments in a spec that is not uploaded itself, or the
location of the project. It depends on line ends, because Linux may fail to start a script with CRLF: a repository that
is checked out on Windows should have `* text=auto eol=lf` in .gitattributes.

The registered properties of an asset hold the list of its files, with which a later `--dry-run` compares. Azure ML
limits a property to about a thousand characters, so the list is compressed and split.
"""

import base64
import binascii
import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

DIGITS = 8
"""Digits of the digest in a version. The whole digest is a property, which is compared if the version exists."""


def digest(kind: str, spec: Mapping[str, Any], files: Iterable[tuple[str, str]]) -> str:
    """Return the digest of an asset, 64 hexadecimal digits.

    kind:  component or environment
    spec:  the content of its YAML, with its own version
    files: name and digest of each of its files
    """
    # The designer shows ports in their order, so a change of the order is a change.
    canonical = {key: list(spec[key].items()) for key in ("inputs", "outputs") if isinstance(spec.get(key), Mapping)}
    content = {"kind": kind, "spec": {**spec, **canonical}, "files": sorted(files)}
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()


def stamped(version: str, digest: str) -> str:
    """Return the version to register."""
    return f"{version}-{digest[:DIGITS]}" if version else digest[:DIGITS]


def of_file(path: Path) -> str:
    """Return the digest of a file's bytes."""
    hasher = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            hasher.update(chunk)
    return hasher.hexdigest()


DIGEST = "allranks.digest"
_FILES = "allranks.files"
_PIECE_LENGTH = 900
_MAX_PIECES = 16
_DIGITS = 12
_MAX_TEXT_SIZE = 1 << 20


def properties(digest: str, files: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Return the properties that an asset is registered with. A list of files that is too long is omitted.

    files: name and digest of each file
    """
    text = "\n".join(f"{content[:_DIGITS]} {name}" for name, content in sorted(files))
    packed = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
    pieces = [packed[start : start + _PIECE_LENGTH] for start in range(0, len(packed), _PIECE_LENGTH)]
    entries = {DIGEST: digest}
    if len(pieces) <= _MAX_PIECES:
        entries |= {f"{_FILES}.{number}": piece for number, piece in enumerate(pieces)}
    return entries


def files_of(properties: Mapping[str, str]) -> dict[str, str] | None:
    """Return the name of each file and the beginning of its digest; None if the properties have no valid list."""
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
    """Return each file that differs, and whether it was added, changed or removed."""
    now = {name: content[:_DIGITS] for name, content in files}
    return [
        (name, "added" if name not in before else "removed" if name not in now else "changed")
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]
