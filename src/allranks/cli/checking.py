"""`allranks check` and `allranks components`: what can be said without running anything."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from allranks.cli.options import FileArgument, JsonOption, SetOption


def check(file: FileArgument, settings: SetOption = None, json: JsonOption = False) -> None:
    """Say everything that is wrong with a pipeline.

    Or with a job, or with a component that it uses. Exits with 2 if anything is. Warns of what a size that a step
    names (resources.instance_type) would make of it.
    """
    import tempfile
    from datetime import date

    from allranks.cli.as_json import to_json
    from allranks.cli.console import console
    from allranks.cli.options import settings_of
    from allranks.cli.problems import print_warnings
    from allranks.errors import InputError, Problem
    from allranks.local.check import check as check_plan
    from allranks.local.check import warnings as warnings_of
    from allranks.local.readable import count
    from allranks.local.reader import read_plan

    warnings: list[Problem] = []
    with tempfile.TemporaryDirectory() as snapshots:
        try:
            plan = read_plan(file, settings_of(settings), Path(snapshots))
            problems = tuple(check_plan(plan))
            warnings = warnings_of(plan, date.today())
        except InputError as error:
            problems = error.problems
    if json:
        print(to_json({"file": file, "problems": list(problems), "warnings": warnings}))
        sys.exit(2 if problems else 0)
    print_warnings(warnings)
    if problems:
        raise InputError(*problems)
    steps = count(len(plan.steps), "step")
    found = "nothing wrong" + (f", {count(len(warnings), 'warning')}" if warnings else "")
    console().print(f"{file}: {plan.name}, {steps}, {found}")


def components(
    folder: Annotated[
        Path | None,
        typer.Argument(help="Where to look; by default components/ here or in a folder above.", show_default=False),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the components of a project with their ports."""
    from allranks.catalog.components import find_components
    from allranks.cli.as_json import to_json
    from allranks.cli.console import console
    from allranks.cli.show import print_components

    found = find_components(folder)
    if json:
        print(to_json(list(found)))
    else:
        print_components(console(), found)
