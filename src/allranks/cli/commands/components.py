"""`allranks components`: list the components of a project or of the library, and copy those of the library."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from allranks.catalog.declared_ports import Port
from allranks.catalog.find import ComponentInfo, bounds, find_components
from allranks.catalog.palette import layout, palette
from allranks.cli.console import console, open_in_browser, print_result, to_json
from allranks.cli.lazy_group import lazy_group
from allranks.cli.options import JsonOption, LibraryOption, argument, chosen_components, option
from allranks.errors import InputError, Problem
from allranks.project.files import copy_components
from allranks.text import count, plain
from allranks.workspace import write_file

app = lazy_group(
    __name__,
    {
        "list": "List the components of a project or of the library with their ports.",
        "copy": "Copy components of the library into a project, to change them.",
    },
    help="List the components of a project or of the library, and copy those of the library.",
    default="list",
)


def copy(
    names: Annotated[list[str], argument("NAME", "Components of the library, such as train_image_classifier.")],
    project: Annotated[
        Path, typer.Option("--to", metavar="DIR", help="Folder of the project. Default: this folder.")
    ] = Path(),
    json: JsonOption = False,
) -> None:
    """Copy components of the library into a project, to change them.

    Their folders are copied to components/, and those of their environments to environments/. A variant is copied with
    the component that has its code. Existing files are never changed.

    For example: allranks components copy train_image_classifier
    """
    folders = [str(project / folder) for folder in copy_components(names, project)]
    print_result(json, {"written": folders}, *(f"written  {folder}" for folder in folders))


def list_(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="Folder with components. Default: components/ in this folder or a parent.", show_default=False
        ),
    ] = None,
    library: LibraryOption = False,
    page: Annotated[
        Path | None, option("--page", "Write the components with their forms as an HTML page.", "FILE")
    ] = None,
    open_: Annotated[bool, option("--open", "Open the page in a browser.")] = False,
    json: JsonOption = False,
) -> None:
    """List the components of a project or of the library with their ports.

    `allranks components` does the same.

    --page and --open show the components as Azure ML's designer does.
    """
    infos = find_components(chosen_components(folder, library))
    if page or open_:
        _show_page(infos, page, open_)
    elif json:
        print(to_json(list(infos)))
    else:
        print_components(console(), infos)


def _show_page(found: Sequence[ComponentInfo], page: Path | None, open_: bool) -> None:
    # A browser may read the file after this command has ended.
    page = page or Path(tempfile.mkdtemp(prefix="allranks-")) / "components.html"
    try:
        write_file(page, palette(found))
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(Problem(str(page), reason, "a writable file", "name another file")) from None
    opened = open_ and open_in_browser(page.absolute().as_uri())
    console().print(f"{'opened' if opened else 'written'}  {page}", soft_wrap=True)


def print_components(console: Console, components: Sequence[ComponentInfo]) -> None:
    """Print a card for each component: description, layout, inputs and outputs."""
    for component in components:
        for part in _card(component):
            console.print(part)
    console.print(count(len(components), "component"), style="bright_black")


def _card(component: ComponentInfo) -> tuple[RenderableType, ...]:
    title = Text.assemble(
        *((plain(component.name), "bold"), (f" {plain(component.version)}", "bright_black")),
        *("  ", (layout(component), "blue")),
    )
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bright_black", no_wrap=True)
    grid.add_column(style="cyan", overflow="fold")
    grid.add_column(overflow="fold")
    for side, ports in (("in", component.inputs), ("out", component.outputs)):
        for port in ports:
            grid.add_row(side, plain(port.name), _port(port))
    return title, Text(plain(component.description)), Padding(grid, (0, 0, 0, 2)), ""


def _port(port: Port) -> Text:
    parts = (
        bounds(port),
        " | ".join(map(plain, port.enum or ())),
        "optional" if port.optional else "",
        f"default {plain(str(port.default))}" if port.default not in (None, "") else "",
    )
    text = Text.assemble(port.type, ("".join(f", {part}" for part in parts if part), "bright_black"))
    return text.append(f"\n{plain(port.description)}", style="bright_black") if port.description else text
