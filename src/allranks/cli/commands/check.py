"""`allranks check`: check a pipeline, job or component without running it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from allranks.cli.options import JsonOption, SetOption

if TYPE_CHECKING:
    from allranks.errors import Problem
    from allranks.plan.graph import Plan
    from allranks.sdk.spec_files import SpecFiles


def check(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE[:NAME]|FOLDER",
            help="A pipeline, job or component, or a folder with components and jobs in YAML at any depth.",
            show_default=False,
        ),
    ],
    settings: SetOption = None,
    json: JsonOption = False,
) -> None:
    """Check a pipeline, job or component without running it.

    Print every problem and exit with 2 if there are any. Components are also checked for how Azure ML's designer
    displays them. For a pipeline, problems of its components in the designer and of the sizes that its steps name are
    warnings.
    """
    from allranks.cli.console import console
    from allranks.cli.errors import print_warnings
    from allranks.cli.options import settings_of
    from allranks.cli.views.json import to_json
    from allranks.components.check.rules import check as check_specs
    from allranks.errors import InputError, Problem
    from allranks.plan.graph import steps
    from allranks.runs.formatting import count

    specs = _specs(Path(file))
    values = settings_of(settings)
    if values and specs is not None:
        raise InputError(Problem("--set", f"{file} is not a pipeline", "a file with one pipeline or job"))
    components = list(specs.components) if specs else []
    problems = check_specs(components) if components else []
    warnings: list[Problem] = []
    plans: list[Plan] = []
    for job in [file] if specs is None else map(str, specs.jobs):
        try:
            plan, job_problems, job_warnings = _checked(job, values, components)
        except InputError as error:
            problems += error.problems
            continue
        plans.append(plan)
        problems += job_problems
        warnings += job_warnings
    if json:
        print(to_json({"file": file, "problems": problems, "warnings": warnings}))
        sys.exit(2 if problems else 0)
    print_warnings(warnings)
    if problems:
        raise InputError(*problems)
    if specs is None:
        parts = [plans[0].name, count(sum(1 for _ in steps(plans[0].graph)), "step")]
    else:
        parts = [
            count(number, noun) for number, noun in ((len(components), "component"), (len(plans), "job")) if number
        ]
    parts += ["no problems", *([count(len(warnings), "warning")] if warnings else [])]
    console().print(f"{file}: {', '.join(parts)}", soft_wrap=True)


def _specs(path: Path) -> SpecFiles | None:
    """Return the specs in a folder, or of a component's file; None for the file of a job.

    Raise InputError for a folder without any.
    """
    from allranks.errors import InputError, Problem
    from allranks.sdk import spec_files
    from allranks.sdk.spec_files import SpecFiles

    if not path.is_dir():
        return SpecFiles((path,), ()) if path.is_file() and spec_files.is_component(path) else None
    specs = spec_files.below(path)
    if not specs.components and not specs.jobs:
        expected = "YAML files of components, pipelines or jobs in this folder or below"
        fix = "to check a pipeline in Python, name its file"
        raise InputError(Problem(str(path), "it contains no component and no job", expected, fix))
    return specs


def _checked(
    file: str, values: dict[str, str], components: Sequence[Path]
) -> tuple[Plan, tuple[Problem, ...], list[Problem]]:
    """Return the plan of a job with its problems and warnings. Raise InputError if there is no plan.

    components: those that are checked separately
    """
    import tempfile
    from datetime import date

    from allranks.local import capacity, requirements
    from allranks.plan.check import warnings as warnings_of
    from allranks.plan.reader import read_plan

    with tempfile.TemporaryDirectory() as snapshots:
        plan = read_plan(file, values, Path(snapshots))
        problems = tuple(requirements.problems(plan))
        warnings = [*warnings_of(plan, date.today()), *capacity.warnings(plan)]
        return plan, problems, [*warnings, *_of_their_components(plan, components)]


def _of_their_components(plan: Plan, checked: Sequence[Path]) -> list[Problem]:
    """Return the problems in the designer of the local components that the plan uses and that are not in `checked`."""
    from allranks.components.check.rules import check as check_specs
    from allranks.plan.graph import steps
    from allranks.sdk.spec_files import is_component

    known = {path.resolve() for path in checked}
    specs = dict.fromkeys(Path(step.spec) for _, step in steps(plan.graph) if step.spec)
    return check_specs([spec for spec in specs if spec.resolve() not in known and is_component(spec)])
