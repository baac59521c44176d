"""`allranks check`: find what is wrong without running anything."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from allranks.cli.options import JsonOption, SetOption

if TYPE_CHECKING:
    from allranks.errors import Problem
    from allranks.plan.graph import Plan


def check(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE[:FUNCTION]|FOLDER",
            help="A pipeline, a job, a component, or a folder of components.",
            show_default=False,
        ),
    ],
    settings: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Say everything that is wrong, before it runs.

    It reads a pipeline, a job, a component, or a folder of components, and exits with 2 if anything is. A component is
    held to what Azure ML's designer shows of it; of the components of a pipeline the same is said as warnings, and so
    is what a size that a step names would make of it.
    """
    import tempfile
    from datetime import date

    from allranks.cli.console import console
    from allranks.cli.errors import print_warnings
    from allranks.cli.options import settings_of
    from allranks.cli.views.json import to_json
    from allranks.errors import InputError
    from allranks.local import requirements
    from allranks.plan.check import warnings as warnings_of
    from allranks.plan.graph import steps
    from allranks.plan.reader import read_plan
    from allranks.runs.formatting import count

    if _are_components(Path(file)):
        _check_components(Path(file), json)
        return
    warnings: list[Problem] = []
    with tempfile.TemporaryDirectory() as snapshots:
        try:
            plan = read_plan(file, settings_of(settings), Path(snapshots))
            problems = tuple(requirements.problems(plan))
            warnings = [*warnings_of(plan, date.today()), *_of_their_components(plan)]
        except InputError as error:
            problems = error.problems
    if json:
        print(to_json({"file": file, "problems": list(problems), "warnings": warnings}))
        sys.exit(2 if problems else 0)
    print_warnings(warnings)
    if problems:
        raise InputError(*problems)
    number = count(sum(1 for _ in steps(plan.graph)), "step")
    found = "nothing wrong" + (f", {count(len(warnings), 'warning')}" if warnings else "")
    console().print(f"{file}: {plan.name}, {number}, {found}")


def _are_components(path: Path) -> bool:
    from allranks.components.find import has_specs
    from allranks.sdk.specs import is_component

    return has_specs(path) if path.is_dir() else path.is_file() and is_component(path)


def _check_components(path: Path, json: bool) -> None:
    from allranks.cli.console import console
    from allranks.cli.views.json import to_json
    from allranks.components.check.rules import check as check_specs
    from allranks.components.find import find_specs
    from allranks.errors import InputError
    from allranks.runs.formatting import count

    specs = find_specs(path)
    problems = check_specs(specs)
    if json:
        print(to_json({"file": str(path), "problems": problems, "warnings": []}))
        sys.exit(2 if problems else 0)
    if problems:
        raise InputError(*problems)
    console().print(f"{path}: {count(len(specs), 'component')}, nothing wrong", soft_wrap=True)


def _of_their_components(plan: Plan) -> list[Problem]:
    """What the designer would make of the components that a plan uses from files of this machine."""
    from allranks.components.check.rules import check as check_specs
    from allranks.plan.graph import steps
    from allranks.sdk.specs import is_component

    specs = dict.fromkeys(Path(step.spec) for _, step in steps(plan.graph) if step.spec)
    return check_specs([spec for spec in specs if is_component(spec)])
