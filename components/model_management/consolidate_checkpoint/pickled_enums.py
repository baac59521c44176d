"""Members of enums in a pickle that is read without executing code in it."""

from __future__ import annotations

import enum
import pickle
from typing import Any


def member(kind: Any, name: str) -> Any:
    """Stand in for getattr, with which pickle reads the members of an enum. Raise UnpicklingError for anything else."""
    if not (isinstance(kind, type) and issubclass(kind, enum.Enum)):
        raise pickle.UnpicklingError(f"the attribute {name} of {kind!r}")
    return kind[name]
