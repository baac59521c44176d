"""Compute digests of files and folders. Equal names and bytes give equal digests, independent of the location."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from allranks.plan import file_tree
from allranks.plan.file_tree import FILE, Stop


class KnownDigests(Protocol):
    """A store of digests of files that were read before."""

    def find(self, status: os.stat_result) -> str | None:
        """Return the digest of a file's content; None if it is unknown."""

    def add(self, status: os.stat_result, digest: str, read: float) -> None:
        """Add the digest of a file. read: the time before the first byte was read, in seconds since the epoch"""

    def save(self) -> None:
        """Save the added digests."""


def of_text(*parts: str) -> str:
    """Return a digest of texts as 64 hexadecimal digits. The digests of ("ab", "c") and ("a", "bc") differ."""
    digest = hashlib.sha256()
    for part in parts:
        _add(digest, part)
    return digest.hexdigest()


def of_path(path: Path, stop: Stop | None = None, known: KnownDigests | None = None) -> str:
    """Return a digest of the name and bytes of a file, or of everything in a folder, empty folders included.

    known: digests of files that need not be read again

    Links are followed. A dangling link, or one to a folder above it, contributes its target. An entry without content,
    such as a FIFO, contributes its kind.

    Raise OSError if something cannot be read, StoppedError once `stop` is set.
    """
    digest = hashlib.sha256()
    try:
        if not os.path.isdir(path):
            _add(digest, path.name)
            _add(digest, _of_file(path, None, stop, known))
            return digest.hexdigest()
        for entry in file_tree.entries(path, stop):
            _add(digest, entry.kind)
            _add(digest, entry.name)
            _add(digest, _of_file(entry.path, entry.status, stop, known) if entry.kind == FILE else entry.target)
    finally:
        if known is not None:
            known.save()
    return digest.hexdigest()


def of_files(files: Mapping[str, Path]) -> str:
    """Return a digest of files and their names. Raise OSError if one cannot be read."""
    return of_text(*(part for name, file in files.items() for part in (name, of_path(file))))


def _add(digest: hashlib._Hash, part: str) -> None:
    # File names may contain bytes that are not valid text.
    data = part.encode(errors="surrogatepass")
    digest.update(f"{len(data)}:".encode())
    digest.update(data)


def _of_file(path: Path, status: os.stat_result | None, stop: Stop | None, known: KnownDigests | None) -> str:
    """Return the digest of a file's content. status: of the file, if the caller has it"""
    if known is not None and (found := known.find(os.stat(path) if status is None else status)) is not None:
        return found
    read = time.time()
    digest = hashlib.sha256()
    with file_tree.open_file(path) as file:
        status = os.fstat(file.fileno())
        for chunk in file_tree.chunks(file, stop):
            digest.update(chunk)
    text = digest.hexdigest()
    if known is not None:
        known.add(status, text, read)
    return text
