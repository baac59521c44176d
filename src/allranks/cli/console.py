"""What commands print: on consoles that can print any text from users, and as JSON."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any, TextIO

from allranks.cli import streams
from allranks.secrets import redact
from allranks.text import plain as without_controls

if TYPE_CHECKING:
    from rich.console import Console

_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""Variables of which one is set if a browser can be started, or is named."""


def console(stream: TextIO | None = None) -> Console:
    """Return a console that writes to the stream, by default standard output, without automatic highlighting.

    A character that the stream's encoding lacks gets a plain form, or is escaped, instead of raising an exception.
    """
    from rich.console import Console  # the completion and the help of a command need no Rich, which takes 0.1 s

    stream = stream or sys.stdout
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors=streams.ERRORS)
    return Console(file=stream, highlight=False, markup=False, emoji=False)


def errors() -> Console:
    """Return a console for standard error."""
    return console(sys.stderr)


def print_written(paths: Iterable[object]) -> None:
    """Print a line per written file, or that there was nothing to write."""
    lines = [f"written  {path}" for path in paths] or ["everything is up to date"]
    console().print("\n".join(lines), soft_wrap=True)


def print_result(json: bool, value: object, *lines: str) -> None:
    """Print what a command did: the value with --json, otherwise the lines."""
    if json:
        print(to_json(value))
    else:
        console().print("\n".join(lines), soft_wrap=True)


def to_json(value: object) -> str:
    """Return a dataclass, or a list or mapping of them, as indented ASCII JSON.

    NaN and infinities become the strings NaN, Infinity and -Infinity, as in protocol buffers.
    """
    return json.dumps(_finite(value), indent=2, allow_nan=False, default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if is_dataclass(value):
        return {field.name: _finite(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(key): _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return value


def plain(text: str) -> str:
    """Return the text without control characters and without secrets."""
    return without_controls(redact(text))


def open_in_browser(address: str) -> bool:
    """Open an address. Return False if this machine has no display or no browser.

    Without a display, `webbrowser` would start a browser in the terminal, which hides what the command prints.
    """
    import webbrowser

    has_display = sys.platform != "linux" or any(os.environ.get(name) for name in _DISPLAYS)
    try:
        return has_display and webbrowser.open(address)
    except (webbrowser.Error, OSError):
        return False
