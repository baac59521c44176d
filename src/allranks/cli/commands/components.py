"""`allranks components`: list the components of a project or of the library, and copy those of the library."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from allranks.cli.console import console, open_in_browser, print_written, to_json
from allranks.cli.lazy_group import lazy_group
from allranks.cli.options import JsonOption, LibraryOption, argument, components_of, option
from allranks.errors import InputError, Problem

if TYPE_CHECKING:
    from allranks.catalog.find import ComponentInfo

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
    names: Annotated[
        list[str],
        argument(
            "NAME",
            "Components of the library, such as train_image_classifier.",
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
    from allranks.project.files import copy_components

    folders = [project / folder for folder in copy_components(names, project)]
    if json:
        print(to_json({"written": [str(folder) for folder in folders]}))
    else:
        print_written(folders)


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
    from allranks.catalog.find import find_components
    from allranks.cli.views.components import print_components

    infos = find_components(components_of(folder, library))
    if page or open_:
        _show_page(infos, page, open_)
    elif json:
        print(to_json(list(infos)))
    else:
        print_components(console(), infos)


def _show_page(found: Sequence[ComponentInfo], page: Path | None, open_: bool) -> None:
    from allranks.catalog.palette import write_palette

    # A browser reads the file after this command has ended.
    page = page or Path(tempfile.mkdtemp(prefix="allranks-")) / "components.html"
    try:
        write_palette(found, page)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(Problem(str(page), reason, "a writable file", "name another file")) from None
    opened = open_ and open_in_browser(page.absolute().as_uri())
    console().print(f"{'opened' if opened else 'written'}  {page}", soft_wrap=True)
