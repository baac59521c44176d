"""Print the report of a rehearsal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from allranks.history.formatting import plain
from allranks.rehearsal.report import Report, advice, facts


def print_report(console: Console, report: Report) -> None:
    """Print the outcome, the figures of each training, and what it would have to save."""
    style = "bold red" if report.problems else "green"
    console.print()
    console.print(Text.assemble(("rehearsal ", "bold"), (plain(report.summary), style)), soft_wrap=True)
    for problem in report.problems:
        console.print(Text(f"  {plain(problem)}", style="red"), soft_wrap=True)
    for training in report.trainings:
        console.print(Text(f"\n{plain(training.name)}", style="bold"))
        for name, value in facts(report, training):
            console.print(Text.assemble((f"  {plain(name):<27}", "bright_black"), plain(value)), soft_wrap=True)
        for text in advice(training) if report.problems else ():
            console.print(Text(f"  lost: {plain(text)}"), soft_wrap=True)
    console.print(f"\n  page  {plain(report.page)}", soft_wrap=True)
