"""`allranks components`: list and describe components, copy those of the library, and write new ones."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from textwrap import indent
from typing import Annotated

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from allranks.catalog.declared_ports import Port
from allranks.catalog.example import example
from allranks.catalog.find import ComponentInfo, bounds, find_components, spec_of
from allranks.catalog.palette import groups, layout, palette
from allranks.cli.completion import complete_components
from allranks.cli.console import console, open_in_browser, print_result, to_json
from allranks.cli.lazy_group import lazy_group
from allranks.cli.options import JsonOption, LibraryOption, chosen_components
from allranks.cli.parameters import argument, option
from allranks.errors import InputError, Problem
from allranks.project.files import copy_components, new_component
from allranks.sdk.paths import shown
from allranks.text import count, plain
from allranks.workspace import write_file

app = lazy_group(
    __name__,
    {
        "list": "List the components of a project or of the library, or describe one.",
        "copy": "Copy components of the library into a project, to change them.",
        "new": "Write a new component into a project: a spec, a program and a test.",
    },
    help="List and describe components, copy those of the library, and write new ones.",
    default="list",
)


def copy(
    names: Annotated[
        list[str],
        argument(
            "NAME", "Components of the library, such as train_image_classifier.", autocompletion=complete_components
        ),
    ],
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


def new(
    name: Annotated[str, argument("NAME", "Name of the component, such as prepare_texts.")], json: JsonOption = False
) -> None:
    """Write a new component into a project: a spec, a program and a test.

    They are components/NAME/component.yaml, components/NAME/main.py and tests/test_NAME.py, and run at once. Existing
    files are never changed.

    For example: allranks components new prepare_texts
    """
    files = [shown(file) for file in new_component(name)]
    place = os.path.dirname(files[0])
    commands = (f"allranks check {place}", f"allranks run {place}", f"pytest {files[-1]}")
    lines = (*(f"written  {file}" for file in files), *(f"  {command}" for command in commands))
    print_result(json, {"written": files}, *lines)


def list_(
    name: Annotated[
        str,
        argument(
            "NAME|FOLDER",
            "A component, or a folder of them. Default: components/ here or in a parent.",
            autocompletion=complete_components,
        ),
    ] = "",
    library: LibraryOption = False,
    page: Annotated[
        Path | None, option("--page", "Write the components with their forms as an HTML page.", "FILE")
    ] = None,
    open_: Annotated[bool, option("--open", "Open the page in a browser.")] = False,
    json: JsonOption = False,
) -> None:
    """List the components of a project or of the library, or describe one.

    `allranks components` does the same. A single component is described: its ports, layout, and an example.

    --page and --open show the components as Azure ML's designer does.

    For example: allranks components train_image_classifier
    """
    if name.isidentifier() and not os.path.exists(name):
        infos = find_components(spec_of(name, library=library))
    else:
        infos = find_components(chosen_components(Path(name) if name else None, library))
    if page or open_:
        _show_page(infos, page, open_)
    elif json:
        print(to_json(list(infos)))
    elif len(infos) == 1:
        describe(console(), infos[0])
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
    """Print a line for each component, by group: its name, and the first sentence of its description."""
    for group, members in groups(components).items():
        console.print(Text(group, style="bold"))
        width = max(len(component.folder) for component in members)
        for component in sorted(members, key=lambda each: each.folder):
            line = Text.assemble("  ", (f"{plain(component.folder):{width}}", "cyan"), "  ", plain(component.summary))
            line.truncate(console.width, overflow="ellipsis")
            console.print(line, soft_wrap=True)
        console.print()
    text = f"{count(len(components), 'component')}. To describe one: allranks components NAME"
    console.print(text, style="bright_black")


def describe(console: Console, component: ComponentInfo) -> None:
    """Print everything about a component: ports, layout, environment, an example, and its spec."""
    title = ((plain(component.folder), "bold"), f" {plain(component.version)}")
    console.print(Text.assemble(*title), Text(plain(component.description)), "", sep="\n")
    facts = {
        "layout": layout(component),
        "environment": plain(component.environment),
        "reuse": "of an earlier result of the same inputs" if component.deterministic else "never: it runs each time",
        "spec": shown(component.path),
    }
    for name, value in facts.items():
        console.print(Text.assemble((f"{name:<13}", "bright_black"), value), soft_wrap=True)
    for side, ports in (("Inputs", component.inputs), ("Outputs", component.outputs)):
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(style="cyan", overflow="fold")
        grid.add_column(overflow="fold")
        for port in ports:
            grid.add_row(plain(port.name), _port(port, is_input=side == "Inputs"))
        if ports:
            console.print("", Text(side, style="bold"), Padding(grid, (0, 0, 0, 2)), sep="\n")
    if text := example(component):
        console.print("", Text("Example", style="bold"), Text(indent(text, "  ")), sep="\n", soft_wrap=True)


def _port(port: Port, *, is_input: bool) -> Text:
    has_default = port.default not in (None, "")
    parts = (
        bounds(port),
        " | ".join(map(plain, port.enum or ())),
        "optional" if port.optional else "required" if is_input and port.default is None else "",
        f"default {plain(str(port.default))}" if has_default else "",
    )
    text = Text.assemble(port.type, ("".join(f", {part}" for part in parts if part), "bright_black"))
    return text.append(f"\n{plain(port.description)}") if port.description else text
