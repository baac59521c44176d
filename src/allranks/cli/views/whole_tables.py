"""Print tables and trees whose ids and names are complete, however narrow the terminal is."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table

_UNLIMITED = 10_000
"""Columns that no table needs."""


def print_whole(console: Console, table: Table) -> None:
    """Print a table. If the terminal is too narrow for the columns that do not wrap, the lines are longer than it is
    wide, so that the terminal wraps them. Rich would truncate such columns."""
    minimum = Measurement.get(console, console.options.update_width(_UNLIMITED), table).minimum
    if minimum > console.width:
        table.width = minimum
    console.print(table, crop=False)


def print_wide(console: Console, content: RenderableType, width: int) -> None:
    """Print on lines that are at least `width` columns long, even if the terminal is narrower."""
    console.print(_Wide(content, width), crop=False)


@dataclass(frozen=True)
class _Wide:
    content: RenderableType
    width: int

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield from console.render(self.content, options.update_width(max(options.max_width, self.width)))
