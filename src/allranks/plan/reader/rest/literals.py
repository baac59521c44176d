"""Parse literals, which are text in REST bodies."""

from __future__ import annotations

import math
from collections.abc import Callable

Literal = str | int | float | bool

_TRUTH = {"True": True, "False": False, "true": True, "false": False}


def of_type(text: str, kind: str) -> Literal:
    """Return the value of a port of that type, or the text itself if the SDK would write the value differently."""
    readers = {"integer": (int,), "number": (int, _finite), "boolean": (_TRUTH.__getitem__,)}.get(kind, ())
    return _first(text, readers)


def guessed(text: str) -> Literal:
    """Return the value of a text whose type is unknown."""
    return _first(text, (int, _finite, {"True": True, "False": False}.__getitem__))


def _first(text: str, readers: tuple[Callable[[str], Literal], ...]) -> Literal:
    for read in readers:
        try:
            value = read(text)
        except (ValueError, KeyError):
            continue
        if str(value) == text or isinstance(value, bool):
            return value
    return text


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value
