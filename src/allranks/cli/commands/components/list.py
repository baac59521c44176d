"""`allranks components list`: list the components of a project or of the library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from allranks.cli.options import JsonOption, LibraryOption, components_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from allranks.components.find import ComponentInfo


def list_(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="Folder with components. Default: components/ in this folder or a parent.", show_default=False
        ),
    ] = None,
    library: LibraryOption = False,
    page: Annotated[
        Path | None,
        typer.Option(
            "--page", metavar="FILE", help="Write the components with their forms as an HTML page.", show_default=False
        ),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    write_variants: Annotated[
        bool,
        typer.Option("--write-variants", help="Write the specs that variants.yaml files describe, and list nothing."),
    ] = False,
    json: JsonOption = False,
) -> None:
    """List the components of a project or of the library with their ports.

    `allranks components` does the same.

    --page and --open show the components as Azure ML's designer does. --write-variants updates the specs that are
    generated from another component and the variants.yaml beside it.
    """
    from allranks.cli.console import console
    from allranks.cli.views.json import to_json
    from allranks.cli.views.tables import print_components
    from allranks.components.find import find_components

    folder = components_of(folder, library)
    if write_variants:
        _write_variants(folder)
        return
    infos = find_components(folder)
    if page or open_:
        _show_page(infos, page, open_)
    elif json:
        print(to_json(list(infos)))
    else:
        print_components(console(), infos)


def _write_variants(folder: Path | None) -> None:
    from allranks.cli.console import console
    from allranks.components import variants
    from allranks.components.find import components_folder

    root = folder or components_folder(Path.cwd())
    tables = sorted(root.rglob(variants.TABLE))
    written = variants.write(table.parent for table in tables)
    for path in written:
        console().print(f"written  {path}", soft_wrap=True)
    if not written:
        console().print("everything is up to date")


def _show_page(found: Sequence[ComponentInfo], page: Path | None, open_: bool) -> None:
    import tempfile

    from allranks.cli.browser import open_in_browser
    from allranks.cli.console import console
    from allranks.components.page.palette import write_palette
    from allranks.errors import InputError, Problem

    # A browser reads the file after this command has ended.
    page = page or Path(tempfile.mkdtemp(prefix="allranks-")) / "components.html"
    try:
        write_palette(found, page)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(Problem(str(page), reason, "a writable file", "name another file")) from None
    opened = open_ and open_in_browser(page.absolute().as_uri())
    console().print(f"{'opened' if opened else 'written'}  {page}", soft_wrap=True)
