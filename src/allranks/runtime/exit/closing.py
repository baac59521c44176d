"""Objects with a thread of their own, which the end of a training has to close before it leaves the process group."""

from __future__ import annotations

from typing import Protocol


class Closable(Protocol):
    """An object with a thread."""

    def close(self) -> None:
        """Complete the work in progress and stop the thread."""

    def abandon(self) -> None:
        """Stop the thread soon. Called if the training failed: other ranks may have ended. Must not raise."""


_open: set[Closable] = set()


def register(item: Closable) -> None:
    """Add an object that the end of the training closes."""
    _open.add(item)


def discard(item: Closable) -> None:
    """Remove an object that is closed."""
    _open.discard(item)


def close_all() -> None:
    """Close the objects of this process."""
    for item in list(_open):
        item.close()


def abandon_all() -> None:
    """Abandon the objects of this process."""
    for item in list(_open):
        item.abandon()
