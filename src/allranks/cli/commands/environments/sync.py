"""`allranks environments sync`: update the files that are generated from the Dockerfiles."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from allranks.cli.options import EnvironmentNamesArgument, EnvironmentsOption


def sync(
    names: EnvironmentNamesArgument = None,
    variant: Annotated[
        str | None,
        typer.Option(
            "--variant",
            metavar="NAME",
            help="CUDA release to build with, from variants.yaml: cuda12 or cuda13. Default: the folders' own.",
            show_default=False,
        ),
    ] = None,
    folder: EnvironmentsOption = None,
) -> None:
    """Update the files that are generated from the Dockerfiles.

    Copy the stages of the base into the other Dockerfiles, and write version, description and tags into each
    environment.yaml. With --variant, first write the images, versions and pinned libraries of that CUDA release.
    """
    from allranks.cli.console import console
    from allranks.environments.find import environments_folder, find_environments
    from allranks.environments.sync import sync as write
    from allranks.errors import InputError, Problem

    root = folder or environments_folder(Path.cwd())
    if variant is not None and names:
        # The others would keep a base of another CUDA.
        found = f"it is given together with {', '.join(names)}"
        raise InputError(Problem("--variant", found, "all environments have one CUDA", "leave out the names"))
    written = write(find_environments(root, tuple(names or ())), root, variant)
    for path in written:
        console().print(f"written  {path}", soft_wrap=True)
    if not written:
        console().print("everything is up to date")
