"""Print problems, warnings and failures: the place, what was found, what was expected, the fix."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from allranks.cli.console import errors, plain
from allranks.errors import InputError, Level, Problem
from allranks.text import count


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
