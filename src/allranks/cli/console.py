"""The two streams that a person reads, ready for text that comes from users."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import TextIO

from rich.console import Console


def console(stream: TextIO | None = None) -> Console:
    """A console that writes to the stream (standard output where there is none) and colours nothing by guessing.

    A stream whose encoding lacks a character gets its escape instead of an exception.
    """
    stream = stream or sys.stdout
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return Console(file=stream, highlight=False, markup=False, emoji=False)


def errors() -> Console:
    """The same for standard error."""
    return console(sys.stderr)
