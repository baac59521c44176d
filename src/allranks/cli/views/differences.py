"""Print what differs between two runs, and why a step was reused or not."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.text import Text

from allranks.cli.views.tables import print_whole, table_of
from allranks.differences import Comparison, Difference, Reuse
from allranks.history.formatting import NOTHING, plain

MOST = 40
"""Maximum number of rows of a table. --json prints all."""


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Print the differences between two runs."""
    runs = plain(comparison.before), plain(comparison.after)
    if comparison.causes:
        first = comparison.causes[0]
        console.print(Text(f"first difference: step {plain(first.step)}, {plain(first.what)}", style="bold"))
        _print_table(console, "What the results depend on", runs, comparison.causes)
    else:
        console.print("Nothing that is recorded of what the results depend on differs.")
    if comparison.results:
        _print_table(console, "Results", runs, comparison.results)


def print_reuse(console: Console, found: Reuse, run: str) -> None:
    """Print why a step of a run was reused or not."""
    console.print(Text.assemble((plain(found.step), "bold"), f": {plain(found.reason)}"), soft_wrap=True)
    if found.causes:
        _print_table(console, "", (plain(found.earlier), plain(run)), found.causes)
    elif found.earlier:
        console.print(f"  run {plain(found.earlier)}")


def _print_table(console: Console, title: str, runs: tuple[str, str], rows: Iterable[Difference]) -> None:
    rows = list(rows)
    table = table_of("Step", "What", *runs)
    step = ""
    for row in rows[:MOST]:
        name, step = ("" if row.step == step else plain(row.step)), row.step
        table.add_row(name, plain(row.what), plain(row.before) or NOTHING, plain(row.after) or NOTHING)
    console.print()
    if title:
        console.print(Text(title, style="bright_black"))
    print_whole(console, table)
    if len(rows) > MOST:
        console.print(f"and {len(rows) - MOST} more, see --json")
