"""The documents of a folder: text files, and the lines of JSON Lines files.

Files are read in pieces of whole lines, so that no process holds more than a few pieces, and several processes read one
large file.
"""

import hashlib
import json
import sysconfig
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from allranks.errors import InputError
from allranks_steps.messages import bad_input

STDLIB = "stdlib"
PIECE_BYTES = 4 << 20
JSON_LINES = (".jsonl", ".ndjson")
HASHES = 1 << 64
_NOT_SOURCES = frozenset({"test", "tests", "idle_test", "site-packages", "dist-packages"})


@dataclass(frozen=True)
class Piece:
    """The lines of a file whose first byte is at `start` or later, and before `end`.

    path: relative to the corpus
    size: of the whole file in bytes
    """

    path: str
    start: int
    end: int
    size: int


@dataclass(frozen=True)
class Document:
    """A document, or a part of a long one.

    key:  names the document in the corpus
    ends: whether this is its last part
    """

    key: str
    text: str
    ends: bool


@dataclass(frozen=True)
class Corpus:
    """Files below a folder, cut into pieces in the order of their paths. text_field: of the lines of JSON Lines."""

    source: str
    root: Path
    pieces: tuple[Piece, ...]
    text_field: str = "text"

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(min(piece.end, piece.size) - piece.start for piece in self.pieces)

    def units(self) -> list[tuple[Piece, ...]]:
        """Return the pieces in groups of about PIECE_BYTES, each of which a worker processes at once."""
        groups: list[tuple[Piece, ...]] = []
        group: list[Piece] = []
        size = 0
        for piece in self.pieces:
            group.append(piece)
            size += piece.end - piece.start
            if size >= PIECE_BYTES:
                groups.append(tuple(group))
                group, size = [], 0
        return [*groups, tuple(group)] if group else groups


@dataclass
class Reader:
    """Read the documents of pieces.

    root, text_field: of the corpus
    skipped: number of files, or pieces of large files, that are not text
    """

    root: Path
    text_field: str
    skipped: Counter[str] = field(default_factory=Counter)

    def documents(self, piece: Piece) -> Iterator[Document]:
        """Yield the documents of a piece. Raise InputError if a line of JSON Lines has no text."""
        file = self.root / piece.path
        try:
            lines = list(_lines(file, piece))
        except OSError as error:
            found = f"{file} cannot be read ({error.strerror})"
            raise bad_input("input folder", found, fix="make it readable, or leave it out") from None
        if piece.path.endswith(JSON_LINES):
            for offset, line in lines:
                if line.strip():
                    yield Document(f"{piece.path}:{offset}", self._field(file, offset, line), ends=True)
            return
        text = _decoded(b"".join(line for _, line in lines))
        if text or (text is not None and piece.start > 0):
            yield Document(piece.path, text, ends=piece.end >= piece.size)
        else:
            self.skipped["binary" if text is None else "empty"] += 1

    def _field(self, file: Path, offset: int, line: bytes) -> str:
        name = self.text_field
        try:
            text = json.loads(line)[name]
        except (ValueError, KeyError, TypeError) as error:
            found = f"no {name!r} ({error!r})"
        else:
            if isinstance(text, str):
                return text
            found = f"{name!r} is a {type(text).__name__}, not a string"
        found = f"{file}, the line at byte {offset:,}: {found}"
        fix = "give the key of the text, and lines that are JSON objects"
        raise bad_input("input text_field", found, fix=fix) from None


def find(folder: Path | None, pattern: str, text_field: str = "text") -> Corpus:
    """Find the files of a folder that match a glob; the sources of Python's standard library if the folder is None.

    Hidden files are ignored. Raise InputError if there is no folder or no file.
    """
    root = Path(sysconfig.get_path("stdlib")) if folder is None else folder
    if not root.is_dir():
        fix = "give a folder with text files"
        raise bad_input("input folder", f"{root} is not a folder", fix=fix)
    pieces: list[Piece] = []
    for file in _files(root, pattern, sources_only=folder is None):
        size, path = file.stat().st_size, file.relative_to(root).as_posix()
        # An empty file has a piece too: it is counted.
        pieces += [Piece(path, start, start + PIECE_BYTES, size) for start in range(0, max(size, 1), PIECE_BYTES)]
    if not pieces:
        raise no_text(root, pattern, "none")
    return Corpus(STDLIB if folder is None else folder.name, root, tuple(pieces), text_field)


def no_text(root: Path, pattern: str, which: str) -> InputError:
    """Return the InputError for a folder without text. which: of the files that match"""
    found = f"{root}: of the files that match {pattern!r}, {which}"
    return bad_input("input folder", found, fix="give text files in UTF-8")


def hashed(key: str, seed: int) -> int:
    """Return a number below HASHES that depends on a document's key and the seed only."""
    return int.from_bytes(hashlib.sha256(f"{seed} {key}".encode()).digest()[:8], "big")


def _files(root: Path, pattern: str, *, sources_only: bool) -> Iterator[Path]:
    try:
        files = sorted(root.glob(pattern))
    except (ValueError, NotImplementedError) as error:
        found = f"{pattern!r} is not a glob ({error})"
        raise bad_input("input pattern", found, fix="give one such as **/*.txt") from None
    for file in files:
        parts = file.relative_to(root).parts
        if any(part.startswith(".") for part in parts) or not file.is_file():
            continue
        if sources_only and (file.suffix != ".py" or not _NOT_SOURCES.isdisjoint(parts)):
            continue
        yield file


def _lines(file: Path, piece: Piece) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a piece, with their offsets in the file."""
    with file.open("rb") as content:
        if piece.start > 0:
            content.seek(piece.start - 1)
            content.readline()  # the rest of a line of the piece before; nothing but its newline if it ends there
        offset = content.tell()
        while offset < piece.end and (line := content.readline()):
            yield offset, line
            offset += len(line)


def _decoded(content: bytes) -> str | None:
    """Return the content as text, None if it is binary."""
    if b"\0" in content:
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None
