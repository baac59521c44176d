"""Convert records to JSON and back."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cattrs.preconf.json import JsonConverter


@cache
def converter() -> JsonConverter:
    """Return the converter of records: ``dumps(value)`` and ``loads(text, type)``."""
    from cattrs.preconf.json import make_converter

    return make_converter()
