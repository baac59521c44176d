"""`allranks environments check`: check environments without building them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from allranks.cli.options import EnvironmentNamesArgument, EnvironmentsOption, JsonOption


def check(
    names: EnvironmentNamesArgument = None,
    folder: EnvironmentsOption = None,
    resolve: Annotated[
        bool, typer.Option("--resolve/--no-resolve", help="Also resolve the packages with pip. Slow.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Check environments without building them.

    Print every problem with file and line. Exit with 2 if there are any.
    """
    from allranks.cli.console import console, errors
    from allranks.cli.views.json import to_json
    from allranks.environments.check import check as check_one
    from allranks.environments.find import environments_folder, find_environments
    from allranks.errors import InputError

    root = folder or environments_folder(Path.cwd())
    environments = find_environments(root, tuple(names or ()))
    problems = []
    for environment in environments:
        with errors().status(f"checking {environment.name}"):  # pip takes minutes
            problems += check_one(environment, root, resolve)
    if json:
        print(to_json({"environments": [environment.name for environment in environments], "problems": problems}))
        sys.exit(2 if problems else 0)
    if problems:
        raise InputError(*problems)
    console().print(f"{', '.join(environment.name for environment in environments)}: no problems")
