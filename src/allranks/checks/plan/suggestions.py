"""Suggestions in messages: the names that exist, the one that was probably meant, and numbers that YAML accepts."""

from __future__ import annotations

import re
from collections.abc import Iterable

from allranks.errors import did_you_mean

_CLOSE = 0.75
"""The share of common letters: ``tset`` is ``test``, but ``dataset_repo_id`` is not ``dataset``."""

_EXPONENT = re.compile(r"([+-]?\d+)[eE]([+-]?)(\d+)")


def one_of(names: Iterable[str], none: str) -> str:
    """Return the allowed names as text. none: the text if there are no names."""
    listed = ", ".join(names)
    return f"one of {listed}" if listed else none


def meant(name: str, names: Iterable[str]) -> str:
    """Return ``did you mean lr?``, or "" if no name differs by a few letters only."""
    return did_you_mean(name, names, cutoff=_CLOSE)


def number_with_point(value: object) -> str:
    """Return how to write a number such as ``1e-8``, which is a string in YAML 1.1; "" for any other value."""
    match = _EXPONENT.fullmatch(value) if isinstance(value, str) else None
    return f"write {match[1]}.0e{match[2] or '+'}{match[3]}: {value} is a string in YAML" if match else ""
