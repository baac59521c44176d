"""Parts of messages."""

from __future__ import annotations


def first_line(error: Exception) -> str:
    """Return the first line of an exception's message, shortened; its type if it has no message."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
