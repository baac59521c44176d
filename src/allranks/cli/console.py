"""Output of commands: consoles that can print any text, problems and warnings, JSON, and pages in a browser."""

import json
import math
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

from rich.console import Console
from rich.style import Style
from rich.text import Text

from allranks.errors import Level, Problem
from allranks.secrets import redact
from allranks.text import count
from allranks.text import plain as without_controls

_DISPLAYS = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
"""Variables of which one is set if this machine can start a browser."""
_PLACE = re.compile(r"https://[^\s<>'\"]*[^\s<>'\".,;:)]|~?[\w.@+-]*/[^\s<>'\":;,)]*[^\s<>'\":;,.)]")
"""An address, or a text that may be a path."""


def console(stream: TextIO | None = None) -> Console:
    """Return a console that writes to the stream, by default standard output, without automatic highlighting.

    A character that the stream's encoding lacks becomes a question mark.
    """
    stream = stream or sys.stdout
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="replace")
    return Console(file=stream, highlight=False, markup=False, emoji=False)


def errors() -> Console:
    """Return a console for standard error."""
    return console(sys.stderr)


def with_links(console: Console, text: str | Text) -> Text:
    """Return the text with its addresses and existing paths as links, if the console is a terminal that has links."""
    text = Text(text) if isinstance(text, str) else text
    for match in _PLACE.finditer(text.plain) if console.is_terminal and not console.is_dumb_terminal else ():
        place = match[0]
        if place.startswith("https://"):
            text.stylize(Style(link=place), *match.span())
        elif os.path.exists(os.path.expanduser(place)):
            text.stylize(Style(link=Path(place).expanduser().absolute().as_uri()), *match.span())
    return text


def print_result(json: bool, value: object, *lines: str) -> None:
    """Print the result of a command: the value with --json, otherwise the lines."""
    if json:
        print(to_json(value))
    else:
        screen = console()
        screen.print(with_links(screen, "\n".join(lines)), soft_wrap=True)


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
    import webbrowser  # takes 0.04 s to import

    has_display = sys.platform != "linux" or any(os.environ.get(name) for name in _DISPLAYS)
    try:
        return has_display and webbrowser.open(address)
    except (webbrowser.Error, OSError):
        return False


def print_problems(problems: Sequence[Problem]) -> None:
    """Print problems to standard error."""
    screen = errors()
    screen.print(with_links(screen, problems_text(problems)), soft_wrap=True)


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


def problems_text(problems: Sequence[Problem]) -> Text:
    """Return the problems as text, with their number if there are several."""
    warnings = [problem for problem in problems if problem.level is Level.WARNING]
    blocks = [_problem(problem) for problem in problems if problem not in warnings]
    if len(blocks) > 1:
        blocks.append(Text(f"{count(len(blocks), 'problem')}; nothing was started.", style="bold"))
    return Text("\n\n").join([*map(warnings_text, ([each] for each in warnings)), *blocks])


def warnings_text(warnings: Sequence[Problem]) -> Text:
    return Text("\n\n").join(_problem(warning, ("! ", "bold yellow")) for warning in warnings)


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
