"""The ids of steps and ranks on a page, which links within the page use."""

from __future__ import annotations

import hashlib
from urllib.parse import quote

_LONGEST = 80


def step_anchor(path: str) -> str:
    """Return the id of a step on the page. It depends on the step's path only, so that it stays the same while the run
    goes on, and a link to it can be shared."""
    name = quote(path, safe="", errors="replace")
    if len(name) > _LONGEST:
        name = hashlib.sha256(path.encode(errors="replace")).hexdigest()[:16]
    return f"step-{name}"


def rank_anchor(path: str, rank: int) -> str:
    """Return the id of a rank of a step. An id of a step contains no slash."""
    return f"{step_anchor(path)}/{rank}"
