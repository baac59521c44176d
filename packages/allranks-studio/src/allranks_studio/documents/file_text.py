"""The text of a file, so that writing it back gives the same bytes: its encoding, its mark, its line ends."""

import codecs
import io
import tokenize
from pathlib import Path

from allranks.errors import InputError, Problem

MOST_BYTES = 4 << 20
"""Limit for a file. A pipeline of 1,000 nodes has 0.3 MB."""


def _encoding(data: bytes, path: Path) -> str:
    """Return the encoding that a file declares, else UTF-8. Raise SyntaxError if it is unknown."""
    if path.suffix == ".py":
        return tokenize.detect_encoding(io.BytesIO(data).readline)[0]
    return "utf-8-sig" if data.startswith(codecs.BOM_UTF8) else "utf-8"


def decode(data: bytes, path: Path) -> str:
    """Return the text of a file, with its line ends as they are. Raise InputError if it cannot be decoded."""
    if len(data) > MOST_BYTES:
        expected = f"a text of at most {MOST_BYTES >> 20} MB"
        raise InputError(Problem(path.name, f"it has {len(data) >> 20} MB", expected))
    try:
        encoding = _encoding(data, path)
        text = data.decode(encoding)
        if "\0" in text or text.encode(encoding) != data:
            raise ValueError(f"writing it in {encoding} would give other bytes")
    except (LookupError, SyntaxError, ValueError) as error:
        raise InputError(Problem(path.name, f"it is not text: {error}", "text in UTF-8")) from None
    return text


def encode(text: str, before: bytes, path: Path) -> bytes:
    """Return a text as bytes, in the encoding that it declares, with a mark if the file had one.

    Raise InputError for characters that the encoding lacks.
    """
    mark = codecs.BOM_UTF8 if before.startswith(codecs.BOM_UTF8) else b""
    try:
        return text.encode(_encoding(mark + text.encode("utf-8", "surrogatepass"), path))
    except (LookupError, SyntaxError, ValueError) as error:
        raise InputError(Problem(path.name, f"it cannot be written: {error}", "another text")) from None
