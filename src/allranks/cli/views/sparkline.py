"""Render a curve as one line of text."""

from __future__ import annotations

import math
from collections.abc import Sequence

from allranks.runs.curves import buckets
from allranks.runs.records import Point

# Not the full block: two curves below each other would touch.
_LEVELS = "▁▂▃▄▅▆▇"


def sparkline(points: Sequence[Point], width: int) -> str:
    """Return the curve in at most `width` characters, with ``×`` for values that are not finite. Fewer than two points
    give an empty text."""
    if len(points) < 2 or width < 1:
        return ""
    values = buckets(points, width)
    finite = [value for value in values if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    # Halved, because the difference of two finite numbers may be infinite.
    span = high / 2 - low / 2
    return "".join(_glyph((value / 2 - low / 2) / span if span else value - low) for value in values)


def _glyph(share: float) -> str:
    """Return the glyph for a level between 0 and 1."""
    return _LEVELS[min(int(share * len(_LEVELS)), len(_LEVELS) - 1)] if math.isfinite(share) else "×"
