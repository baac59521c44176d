"""What commands print: on consoles that can print any text from users, as JSON, and problems with their fixes."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Iterable, Sequence
from io import TextIOWrapper
from typing import Any, TextIO, TypeVar

from rich.console import Console
from rich.text import Text

from allranks.cli import streams
from allranks.errors import InputError, Problem
from allranks.runs.formatting import count
from allranks.runs.formatting import plain as without_controls
from allranks.secrets import redact

T = TypeVar("T")

_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""Variables of which one is set if a browser can be started, or is named."""


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


def print_written(paths: Iterable[object]) -> None:
    """Print a line per written file, or that there was nothing to write."""
    lines = [f"written  {path}" for path in paths] or ["everything is up to date"]
    console().print("\n".join(lines), soft_wrap=True)


def to_json(value: object) -> str:
    """Return a dataclass, or a list or mapping of them, as indented ASCII JSON.

    NaN and infinities become the strings NaN, Infinity and -Infinity, as in protocol buffers.
    """
    from cattrs import Converter

    return json.dumps(_finite(Converter().unstructure(value)), indent=2, allow_nan=False, default=str)


def from_json(text: str, kind: type[T]) -> T:
    """Return the dataclass that `to_json` wrote. Raise ValueError or an error of cattrs for any other text."""
    from cattrs import Converter

    return Converter().structure(json.loads(text), kind)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, dict):
        return {str(key): _finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(entry) for entry in value]
    return value


def print_problems(error: InputError, console: Console | None = None) -> None:
    """Print every problem to standard error or to the console: its place, what was found, what was expected, the fix,
    and the command that explains it."""
    console = console or errors()
    console.print(problems_text(error.problems), soft_wrap=True)


def print_warnings(warnings: Sequence[Problem]) -> None:
    """Print warnings to standard error."""
    if warnings:
        errors().print(warnings_text(warnings), soft_wrap=True)


def print_machine(problems: Sequence[Problem]) -> None:
    """Print what this machine lacks to standard error, below a heading."""
    if problems:
        heading = "this machine lacks what these steps need; on a machine that has it they can run"
        errors().print(Text(heading, style="bold"), soft_wrap=True)
        print_warnings(problems)


def print_failure(problem: Problem) -> None:
    """Print a failure that is not caused by the input to standard error."""
    errors().print(_problem(problem), soft_wrap=True)


def problems_text(problems: Sequence[Problem]) -> Text:
    """Return the problems as text, with their number if there are several."""
    blocks = [_problem(problem) for problem in problems]
    if len(blocks) > 1:
        blocks.append(Text(f"{count(len(blocks), 'problem')}; nothing was started.", style="bold"))
    return Text("\n\n").join(blocks)


def warnings_text(warnings: Sequence[Problem]) -> Text:
    """Return the warnings as text."""
    return Text("\n\n").join(_problem(warning, ("! ", "bold yellow")) for warning in warnings)


def plain(text: str) -> str:
    """Return the text without control characters and without secrets."""
    return without_controls(redact(text))


def _problem(problem: Problem, mark: tuple[str, str] = ("✗ ", "bold red")) -> Text:
    text = Text.assemble(mark, (plain(problem.where or problem.found), "bold"))
    rows = [("found", problem.found if problem.where else "", ""), ("expected", problem.expected, "")]
    rows += (("fix", problem.fix, "green"), ("more", problem.more, "cyan"), ("rule", problem.rule, "bright_black"))
    for name, value, style in rows:
        if value:
            first, *more = plain(value).splitlines()
            text.append(f"\n  {name:<8}  ", style="bright_black").append(first, style=style)
            for line in more:
                text.append(f"\n{' ' * 12}{line}", style=style)
    return text


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
