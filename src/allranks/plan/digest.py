"""Digests of what files contain: two folders with the same names and bytes have the same one, wherever they lie."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

CHUNK = 1 << 20


def of_text(*parts: str) -> str:
    """A digest of texts, in which ("ab", "c") differs from ("a", "bc"). 64 hexadecimal digits."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(f"{len(data)}:".encode())
        digest.update(data)
    return digest.hexdigest()


def of_path(path: Path) -> str:
    """A digest of a file's bytes, or of the names and bytes of everything in a folder. Links are followed.

    Raises OSError where something cannot be read.
    """
    if not path.is_dir():
        return _of_file(path)
    return of_text(*(part for name, file in sorted(_files(path)) for part in (name, _of_file(file))))


def _files(folder: Path) -> list[tuple[str, Path]]:
    found = []
    for parent, folders, names in os.walk(folder, followlinks=True):
        folders.sort()
        found += [(os.path.relpath(os.path.join(parent, name), folder), Path(parent, name)) for name in names]
    return found


def _of_file(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
