"""The text of a file, so that writing it back gives the same bytes: its encoding, its mark, its line ends."""

import codecs
import hashlib
import re
import stat
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.workspace import write_file

MOST_BYTES = 4 << 20
"""Limit for a file. A pipeline of 1,000 nodes has 0.3 MB."""

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)", re.ASCII)


def encoding_of(data: bytes, suffix: str) -> str:
    """Return the encoding that a file declares, else UTF-8. suffix: of its name"""
    if data.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    declared = [match[1].decode() for line in data.split(b"\n", 2)[:2] if (match := _COOKIE.match(line))]
    return declared[0] if declared and suffix == ".py" else "utf-8"


def decode(data: bytes, path: Path) -> str:
    """Return the text of a file, with its line ends as they are. Raise InputError if it cannot be decoded."""
    encoding = encoding_of(data, path.suffix)
    try:
        if len(data) <= MOST_BYTES and b"\0" not in data and (text := data.decode(encoding)).encode(encoding) == data:
            return text
    except (LookupError, UnicodeError) as error:
        raise InputError(Problem(path.name, f"it is not text in {encoding}: {error}", "text in UTF-8")) from None
    found = f"it has {len(data) >> 20} MB" if len(data) > MOST_BYTES else f"it is not text in {encoding}"
    raise InputError(Problem(path.name, found, f"a text of at most {MOST_BYTES >> 20} MB"))


def encode(text: str, before: bytes, path: Path) -> bytes:
    """Return a text as bytes, in the encoding that it declares, with a mark if the file had one.

    Raise InputError for characters that the encoding lacks.
    """
    mark = "utf-8-sig" if before.startswith(codecs.BOM_UTF8) else ""
    encoding = mark or encoding_of(text.encode("utf-8", "surrogatepass"), path.suffix)
    try:
        return text.encode(encoding)
    except (LookupError, UnicodeError) as error:
        raise InputError(Problem(path.name, f"it cannot be written in {encoding}: {error}", "another text")) from None


def digest(data: bytes) -> str:
    """Return the digest by which changes name the text that they are based on."""
    return hashlib.sha256(data).hexdigest()[:32]


def located(folder: Path, path: str) -> Path:
    """Return the absolute path of a file in a folder. Raise InputError if it is outside, also by a symbolic link."""
    root = folder.resolve()
    file = root / path
    real = file.resolve()
    if not real.is_relative_to(root) or "\0" in path:
        raise InputError(Problem(path, "it is outside of the folder", f"a file below {folder}"))
    return file if file.parent.resolve() == real.parent and not file.is_symlink() else real


def replace(path: Path, data: bytes) -> None:
    """Replace the content of a file in one step. Its mode stays. Raise OSError."""
    write_file(path, data, stat.S_IMODE(path.stat().st_mode))
