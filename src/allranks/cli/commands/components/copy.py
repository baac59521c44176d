"""`allranks components copy`: copy components of the library into a project."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from allranks.cli import completion
from allranks.cli.options import JsonOption


def copy(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            help="Components of the library, such as train_image_classifier.",
            autocompletion=completion.shipped_components,
        ),
    ],
    project: Annotated[
        Path, typer.Option("--to", metavar="DIR", help="Folder of the project. Default: this folder.")
    ] = Path(),
    json: JsonOption = False,
) -> None:
    """Copy components of the library into a project, to change them.

    Their folders are copied to components/, and those of their environments to environments/. A variant is copied with
    the component that has its code. Nothing that exists is changed.

    For example: allranks components copy train_image_classifier
    """
    from allranks.cli.console import console
    from allranks.cli.views.json import to_json
    from allranks.project.copy import copy_components

    folders = [project / folder for folder in copy_components(names, project)]
    if json:
        print(to_json({"written": [str(folder) for folder in folders]}))
        return
    for folder in folders:
        console().print(f"written  {folder}", soft_wrap=True)
