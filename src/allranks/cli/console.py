"""Consoles for standard output and standard error that can print any text from users."""

from __future__ import annotations

import sys
from io import TextIOWrapper
from typing import TextIO

from rich.console import Console

from allranks.cli import streams


def console(stream: TextIO | None = None) -> Console:
    """Return a console that writes to the stream, by default standard output, without automatic highlighting.

    A character that the stream's encoding lacks gets a plain form, or is escaped, instead of raising an exception.
    """
    stream = stream or sys.stdout
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors=streams.ERRORS)
    return Console(file=stream, highlight=False, markup=False, emoji=False)


def errors() -> Console:
    """Return a console for standard error."""
    return console(sys.stderr)
