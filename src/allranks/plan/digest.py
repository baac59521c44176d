"""Digests of the content of files. Folders with the same names and bytes have the same digest, wherever they are."""

from __future__ import annotations

import hashlib
from pathlib import Path

from allranks.plan import file_tree
from allranks.plan.file_tree import FILE, Stop


def of_text(*parts: str) -> str:
    """Return a digest of texts as 64 hexadecimal digits. The digests of ("ab", "c") and ("a", "bc") differ."""
    digest = hashlib.sha256()
    for part in parts:
        _add(digest, part)
    return digest.hexdigest()


def of_path(path: Path, stop: Stop | None = None) -> str:
    """Return a digest of the name and bytes of a file, or of everything in a folder, empty folders included.

    Links are followed. A dangling link, or one to a folder above it, contributes its target. An entry without content,
    such as a FIFO, contributes its kind.

    Raise OSError if something cannot be read, StoppedError once `stop` is set.
    """
    digest = hashlib.sha256()
    if not path.is_dir():
        _add(digest, path.name)
        _add(digest, _of_file(path, stop))
        return digest.hexdigest()
    for entry in file_tree.entries(path, stop):
        _add(digest, entry.kind)
        _add(digest, entry.name)
        _add(digest, _of_file(entry.path, stop) if entry.kind == FILE else entry.target)
    return digest.hexdigest()


def _add(digest: hashlib._Hash, part: str) -> None:
    # File names may contain bytes that are not valid text.
    data = part.encode(errors="surrogatepass")
    digest.update(f"{len(data)}:".encode())
    digest.update(data)


def _of_file(path: Path, stop: Stop | None) -> str:
    digest = hashlib.sha256()
    for chunk in file_tree.chunks(path, stop):
        digest.update(chunk)
    return digest.hexdigest()
