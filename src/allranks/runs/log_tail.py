"""The last lines of a log."""

from __future__ import annotations

import os

TAIL_LINES = 20
TAIL_BYTES = 1 << 16


def tail(log: str, lines: int = TAIL_LINES) -> tuple[str, ...]:
    """Return the last lines of a log, which may be large, missing, or binary."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ()
    return tuple(text.rstrip().splitlines()[-lines:])
