"""Suggestions in messages: the names that exist, and the one that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def one_of(names: Iterable[str], none: str) -> str:
    """Return the allowed names as text. none: the text if there are no names."""
    listed = ", ".join(names)
    return f"one of {listed}" if listed else none


def meant(name: str, names: Iterable[str]) -> str:
    """Return ``did you mean lr?``, or "" if no name is similar."""
    similar = difflib.get_close_matches(name, list(names), n=1)
    return f"did you mean {similar[0]}?" if similar else ""
