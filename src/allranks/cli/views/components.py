"""Print components as cards: description, launch, inputs and outputs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from allranks.catalog.declared_ports import Port
from allranks.catalog.find import ComponentInfo, bounds
from allranks.history.formatting import count, layout, plain


def print_components(console: Console, components: Sequence[ComponentInfo]) -> None:
    """Print a card per component."""
    for component in components:
        _print_card(console, component)
    console.print(Text(count(len(components), "component"), style="bright_black"))


def _print_card(console: Console, component: ComponentInfo) -> None:
    launch = layout(component.distribution, component.instance_count, component.process_count_per_instance or 1)
    has_layout = component.instance_count != 1 or component.process_count_per_instance is not None
    if component.distribution != "none" and not has_layout:
        launch = component.distribution  # a pipeline sets the layout
    title = Text.assemble(
        (plain(component.name), "bold"), (f" {plain(component.version)}", "bright_black"), "  ", (launch, "blue")
    )
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bright_black", no_wrap=True)
    grid.add_column(style="cyan", overflow="fold")
    grid.add_column(overflow="fold")
    for port in component.inputs:
        grid.add_row("in", plain(port.name), _port(port))
    for port in component.outputs:
        grid.add_row("out", plain(port.name), _port(port))
    for part in (title, Text(plain(component.description)), Padding(grid, (0, 0, 0, 2)), ""):
        console.print(part)


def _port(port: Port) -> Text:
    text = Text.assemble(port.type, (_bounds(port), "bright_black"))
    return text.append(f"\n{plain(port.description)}", style="bright_black") if port.description else text


def _bounds(port: Port) -> str:
    """Return the allowed values of a port and its default."""
    parts = [
        bounds(port),
        " | ".join(map(plain, port.enum)),
        "optional" if port.optional else "",
        f"default {plain(str(port.default))}" if port.default not in (None, "") else "",
    ]
    return "".join(f", {part}" for part in parts if part)
