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

    Print every problem with file and line. Exit with 2 if there are any. Without hadolint, its rules are not checked,
    and a warning says so.
    """
    from allranks.cli.console import console, errors
    from allranks.cli.errors import print_warnings
    from allranks.cli.views.json import to_json
    from allranks.environments.check import check as check_one
    from allranks.environments.check import hadolint
    from allranks.environments.find import environments_folder, find_environments
    from allranks.errors import InputError

    root = folder or environments_folder(Path.cwd())
    environments = find_environments(root, tuple(names or ()))
    problems = []
    for environment in environments:
        with errors().status(f"checking {environment.name}"):  # pip takes minutes
            problems += check_one(environment, root, resolve)
    missing = hadolint.missing()
    warnings = [missing] if missing else []
    if json:
        checked = [environment.name for environment in environments]
        print(to_json({"environments": checked, "problems": problems, "warnings": warnings}))
        sys.exit(2 if problems else 0)
    print_warnings(warnings)
    if problems:
        raise InputError(*problems)
    console().print(f"{', '.join(environment.name for environment in environments)}: no problems")
