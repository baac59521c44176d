"""Names of files without spaces and other characters that a shell treats specially."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[\w@%+=:,./-]*", re.ASCII)
_SPECIAL = re.compile(r"[^\w@%+=:,.-]", re.ASCII)


def is_plain(path: str) -> bool:
    """Return whether a shell reads a path as one word and changes nothing in it."""
    return _PLAIN.fullmatch(path) is not None


def plain_name(name: str) -> str:
    """Return the name of a file without special characters, with the same suffix if that has none."""
    return _SPECIAL.sub("_", name)
