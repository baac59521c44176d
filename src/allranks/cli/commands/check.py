"""`allranks check`: check a pipeline, job or component without running it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from allranks.cli import completion
from allranks.cli.options import JsonOption, ParamsOption, SetOption, argument
from allranks.cli.values import settings_of

if TYPE_CHECKING:
    from allranks.checks.plan.rule import Findings
    from allranks.errors import Problem
    from allranks.plan.graph import Plan
    from allranks.sdk.spec_files import SpecFiles


@dataclass(frozen=True)
class _Result:
    """What checking one file or folder has found.

    content: what it contains, such as the name of the pipeline and the number of its steps
    advice:  what would make its components easier to use in the designer
    machine: what this machine lacks to run it
    """

    file: str
    content: tuple[str, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = ()
    advice: tuple[Problem, ...] = ()
    machine: tuple[Problem, ...] = ()

    def __str__(self) -> str:
        from allranks.runs.formatting import count

        problems = count(len(self.problems), "problem") if self.problems else "no problems"
        warnings = [count(len(self.warnings), "warning")] if self.warnings else []
        advice = [f"advice: {len(self.advice)} (--strict lists it)"] if self.advice else []
        machine = ["cannot run on this machine"] if self.machine else []
        return f"{self.file}: {', '.join([*self.content, problems, *warnings, *advice, *machine])}"


def check(
    files: Annotated[
        list[str],
        argument(
            "FILE[:NAME]|FOLDER...",
            "Pipelines, jobs or components, or folders with any of them, at any depth.",
            autocompletion=completion.pipeline_files,
        ),
    ],
    settings: SetOption = None,
    params: ParamsOption = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Warnings are problems too, and so is advice about the designer.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Check a pipeline, job or component without running it.

    Print every problem and exit with 2 if there are any; of several files, a line with the result of each. A problem is
    what Azure ML, azure-ai-ml or the designer refuses. A warning is what they accept but probably does not do
    what was intended. Advice makes components easier to use in the designer, such as descriptions and ranges; it is
    listed by --strict only. docs/checks.md lists the rules, each with its source; a comment `# allranks: ignore RULE`
    ignores a warning or advice on its line, or in the whole file if it is above all content. For a pipeline, problems
    of its components and of the sizes that its steps name are warnings. What this machine lacks to run it, such as a
    package, mpirun or an asset of a workspace, is listed separately and is not an error. --json prints an object, or an
    array of one per file.
    """
    from allranks.cli.console import console, print_machine, print_warnings, to_json
    from allranks.errors import InputError, Problem
    from allranks.runs.formatting import plain as without_controls

    values = settings_of(settings, params)
    if values and len(files) > 1:
        raise InputError(Problem("--set", f"{len(files)} files are given", "one file with a pipeline or job"))
    results = [_result(file, values) for file in files]
    if strict:
        results = [_strict(result) for result in results]
    # Several jobs may use the same component.
    problems = list(dict.fromkeys(problem for result in results for problem in result.problems))
    if json:
        objects = [
            {
                "file": result.file,
                "problems": result.problems,
                "warnings": result.warnings,
                "advice": result.advice,
                "machine": result.machine,
            }
            for result in results
        ]
        print(to_json(objects if len(files) > 1 else objects[0]))
        sys.exit(2 if problems else 0)
    print_warnings(list(dict.fromkeys(warning for result in results for warning in result.warnings)))
    print_machine(list(dict.fromkeys(problem for result in results for problem in result.machine)))
    for result in results:
        if len(results) > 1 or not result.problems:
            console().print(without_controls(str(result)), soft_wrap=True)
    if problems:
        raise InputError(*problems)


def _strict(result: _Result) -> _Result:
    return replace(result, problems=(*result.problems, *result.warnings, *result.advice), warnings=(), advice=())


def _result(file: str, values: dict[str, str]) -> _Result:
    """Check a file or a folder."""
    from allranks.api import jobs
    from allranks.checks.component.rules import check as check_specs
    from allranks.checks.plan import tolerated
    from allranks.components import variants
    from allranks.errors import InputError
    from allranks.plan.graph import steps
    from allranks.runs.formatting import count

    try:
        specs = _specs(Path(file), values)
    except InputError as error:
        return _Result(file, (), error.problems)
    components = list(specs.components) if specs else []
    found = check_specs(components)
    problems: list[Problem] = [*found.errors, *variants.check(components)] if components else []
    warnings, advice = list(found.warnings), list(found.advice)
    machine = list(found.machine)
    plans: list[Plan] = []
    for job in [file] if specs is None else (*map(str, specs.jobs), *specs.pipelines):
        checked = jobs.check(job, values)
        problems += checked.problems
        warnings += checked.warnings
        machine += checked.machine
        advice += checked.advice
        if checked.plan is not None:
            plans.append(checked.plan)
            found = _of_their_components(checked.plan, components)
            warnings += [*found.errors, *found.warnings]
            advice += found.advice
            machine += found.machine
    problems, of_no_effect, lacking = tolerated.separated(problems)
    warnings += of_no_effect
    machine += lacking
    if specs is None:
        content = [part for plan in plans for part in (plan.name, count(sum(1 for _ in steps(plan.graph)), "step"))]
    else:
        numbers = ((len(components), "component"), (len(specs.jobs), "job"), (len(specs.pipelines), "pipeline"))
        content = [count(number, noun) for number, noun in numbers if number]
    return _Result(file, tuple(content), tuple(problems), tuple(warnings), tuple(advice), tuple(machine))


def _specs(path: Path, values: dict[str, str]) -> SpecFiles | None:
    """Return the specs in a folder, or of a component's file; None for the file of a job.

    values: those of --set, for a job only

    Raise InputError for a folder without any.
    """
    from allranks.errors import InputError, Problem
    from allranks.sdk import spec_files
    from allranks.sdk.spec_files import SpecFiles

    if not path.is_dir() and not (path.is_file() and spec_files.is_component(path)):
        return None
    if values:
        raise InputError(Problem("--set", f"{path} is not a pipeline", "a file with one pipeline or job"))
    if not path.is_dir():
        return SpecFiles((path,), ())
    specs = spec_files.below(path)
    if not specs.components and not specs.jobs and not specs.pipelines:
        expected = "components, jobs, or functions with @dsl.pipeline in this folder or below"
        fix = "name the file, if it is a notebook or creates its job in another way"
        raise InputError(Problem(str(path), "it contains no component, no job and no pipeline", expected, fix))
    return specs


def _of_their_components(plan: Plan, checked: Sequence[Path]) -> Findings:
    """Check the local components that the plan uses, except those in `checked`."""
    from allranks.checks.component.rules import check as check_specs
    from allranks.plan.graph import steps
    from allranks.sdk.spec_files import is_component

    known = {path.resolve() for path in checked}
    specs = dict.fromkeys(Path(step.spec) for _, step in steps(plan.graph) if step.spec)
    unchecked = [spec for spec in specs if spec.resolve() not in known and is_component(spec)]
    return check_specs(unchecked, by_themselves=False)
