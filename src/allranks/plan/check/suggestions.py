"""What a message suggests: the names that exist, and the one that was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def one_of(names: Iterable[str], none: str) -> str:
    """Return what may stand somewhere. none: what is said where nothing may."""
    listed = ", ".join(names)
    return f"one of {listed}" if listed else none


def meant(name: str, names: Iterable[str]) -> str:
    """Return ``did you mean lr?``, or nothing where no name is similar."""
    similar = difflib.get_close_matches(name, list(names), n=1)
    return f"did you mean {similar[0]}?" if similar else ""
