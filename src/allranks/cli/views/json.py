"""Convert records, plans and specs to JSON and back: keys are field names, states are words, tuples are lists."""

from __future__ import annotations

import json
import math
from typing import Any, TypeVar

T = TypeVar("T")


def to_json(value: object) -> str:
    """Return a dataclass, or a list or mapping of them, as indented ASCII JSON.

    NaN and infinities become the strings NaN, Infinity and -Infinity, as in protocol buffers.
    """
    from cattrs import Converter

    return json.dumps(_finite(Converter().unstructure(value)), indent=2, allow_nan=False, default=str)


def from_json(text: str, kind: type[T]) -> T:
    """Return the dataclass that `to_json` wrote. Raise ValueError or an error of cattrs for any other text."""
    from cattrs import Converter

    return Converter().structure(json.loads(text), kind)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {str(key): _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return value
