"""The colours of states on a terminal."""

from __future__ import annotations

from types import MappingProxyType

from rich.text import Text

from allranks.runs.formatting import SYMBOLS
from allranks.runs.records import Status

STYLES = MappingProxyType(
    {
        Status.NOT_STARTED: "bright_black",
        Status.PREPARING: "cyan",
        Status.RUNNING: "bold blue",
        Status.COMPLETED: "green",
        Status.FAILED: "bold red",
        Status.CANCELED: "yellow",
        Status.INTERRUPTED: "yellow",
        Status.SKIPPED: "bright_black",
    }
)


def symbol(status: Status) -> Text:
    """Return the state's glyph in its colour."""
    return Text(SYMBOLS[status], style=STYLES[status])


def word(status: Status) -> Text:
    """Return the state's name in its colour."""
    return Text(str(status), style=STYLES[status])
