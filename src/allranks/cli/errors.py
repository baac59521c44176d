"""Mistakes in what a user gave, as a message that leads to the fix."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from allranks.cli.console import errors
from allranks.errors import InputError, Problem
from allranks.runs.formatting import count
from allranks.runs.formatting import plain as without_controls
from allranks.secrets import redact


def print_problems(error: InputError, console: Console | None = None) -> None:
    """Writes every problem to standard error, or to the console: its place, what was found, expected, the fix."""
    console = console or errors()
    console.print(problems_text(error.problems), soft_wrap=True)


def print_warnings(warnings: Sequence[Problem]) -> None:
    """Writes what would run and is probably not meant to standard error; nothing where there is nothing."""
    if warnings:
        errors().print(warnings_text(warnings), soft_wrap=True)


def print_failure(problem: Problem) -> None:
    """Writes to standard error what failed although the input was right."""
    errors().print(_problem(problem), soft_wrap=True)


def problems_text(problems: Sequence[Problem]) -> Text:
    """The problems one after another, and how many there are where there are several."""
    blocks = [_problem(problem) for problem in problems]
    if len(blocks) > 1:
        blocks.append(Text(f"{count(len(blocks), 'problem')}; nothing was started.", style="bold"))
    return Text("\n\n").join(blocks)


def warnings_text(warnings: Sequence[Problem]) -> Text:
    """What would run and is probably not meant, one after another."""
    return Text("\n\n").join(_problem(warning, ("! ", "bold yellow")) for warning in warnings)


def plain(text: str) -> str:
    """Return the text without control characters and without secrets."""
    return without_controls(redact(text))


def _problem(problem: Problem, mark: tuple[str, str] = ("✗ ", "bold red")) -> Text:
    text = Text.assemble(mark, (plain(problem.where or problem.found), "bold"))
    rows = [("found", problem.found if problem.where else "", ""), ("expected", problem.expected, "")]
    for name, value, style in (*rows, ("fix", problem.fix, "green")):
        if value:
            first, *more = plain(value).splitlines()
            text.append(f"\n  {name:<8}  ", style="bright_black").append(first, style=style)
            for line in more:
                text.append(f"\n{' ' * 12}{line}", style=style)
    return text
