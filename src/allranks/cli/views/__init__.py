"""The output of commands: trees, plans, summaries, tables."""

from types import MappingProxyType

from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from allranks.history.formatting import SYMBOLS
from allranks.history.records import Status

STYLES = MappingProxyType(
    {
        Status.NOT_STARTED: "bright_black",
        Status.PREPARING: "cyan",
        Status.RUNNING: "bold blue",
        Status.COMPLETED: "green",
        Status.FAILED: "bold red",
        Status.CANCELED: "yellow",
        Status.INTERRUPTED: "yellow",
        Status.SKIPPED: "bright_black",
    }
)


def symbol(status: Status) -> Text:
    """Return the state's glyph in its colour."""
    return Text(SYMBOLS[status], style=STYLES[status])


def word(status: Status) -> Text:
    """Return the state's name in its colour."""
    return Text(str(status), style=STYLES[status])


def state(status: Status) -> Text:
    """Return the state's glyph and name in its colour."""
    return Text(" ").join((symbol(status), word(status)))


def table_of(*columns: str) -> Table:
    """Return a table with columns. ``>`` before a name aligns to the right, and ``!`` disables wrapping."""
    padding = (0, 1, 0, 0)
    table = Table(box=box.SIMPLE_HEAD, header_style="bright_black", pad_edge=False, show_edge=False, padding=padding)
    for column in columns:
        justify = "right" if ">" in column[:2] else "left"
        table.add_column(column.lstrip(">!"), justify=justify, overflow="fold", no_wrap="!" in column[:2])  # type: ignore[arg-type]
    return table


def print_whole(console: Console, table: Table) -> None:
    """Print a table. Its lines are longer than a terminal that is too narrow for the columns that do not wrap, so that
    the terminal wraps them. Rich would truncate such columns."""
    minimum = Measurement.get(console, console.options.update_width(10_000), table).minimum
    if minimum > console.width:
        table.width = minimum
    console.print(table, crop=False)


def width_of(console: Console, table: Table) -> int:
    """Return the width of a table with whole columns."""
    return Measurement.get(console, console.options.update_width(10_000), table).maximum
