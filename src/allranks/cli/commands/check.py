"""`allranks check`: check a pipeline, job, component or schedule without running it."""

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from allranks.api import jobs
from allranks.catalog import variants
from allranks.checks import Findings
from allranks.checks.component import check as check_specs
from allranks.cli.commands.ci_reports import CheckedFiles, one_format, print_report
from allranks.cli.console import console, errors, print_machine, print_warnings, to_json
from allranks.cli.options import FolderOption, FormatOption, JsonOption, SetOption, StandInOption
from allranks.cli.parameters import argument, option
from allranks.cli.values import settings_of, stand_ins_of
from allranks.errors import InputError, Level, Problem, raise_any
from allranks.history import registered
from allranks.local import interpreters
from allranks.plan.assets import asset_id
from allranks.plan.assets.lookup import skeleton
from allranks.plan.graph import Plan
from allranks.plan.reader import lookup_of, opened
from allranks.plan.walk import left_out, steps
from allranks.schedules.finding import find_schedules
from allranks.sdk import spec_files
from allranks.sdk.paths import shown
from allranks.sdk.session import session
from allranks.sdk.spec_files import Kind, SpecFiles
from allranks.text import count
from allranks.text import plain as without_controls
from allranks.workspace import Workspace


@dataclass(frozen=True)
class Result:
    """The result of checking one file or folder.

    content:  what it contains, such as the name of the pipeline and the number of its steps
    checked:  its components and schedules, and each of its jobs
    left_out: a line for each snapshot of code that lacks files
    """

    file: str
    content: tuple[str, ...]
    checked: tuple[CheckedFiles, ...]
    left_out: tuple[str, ...] = ()

    @property
    def findings(self) -> Findings:
        return Findings(tuple(problem for each in self.checked for problem in each.findings.found))

    def __str__(self) -> str:
        found = self.findings
        problems = count(len(found.errors), "problem") if found.errors else "no problems"
        warnings = [count(len(found.warnings), "warning")] if found.warnings else []
        advice = [f"advice: {len(found.advice)} (--strict lists it)"] if found.advice else []
        machine = ["cannot run on this machine"] if found.machine else []
        return f"{self.file}: {', '.join([*self.content, problems, *warnings, *advice, *machine])}"


def check(
    files: Annotated[
        list[str],
        argument(
            "FILE[:NAME]|FOLDER...",
            "Pipelines, jobs, components or schedules, or folders with any of them, at any depth.",
        ),
    ],
    settings: SetOption = None,
    stand_ins: StandInOption = None,
    strict: Annotated[
        bool, option("--strict", "Warnings are problems too, and so is advice about the designer.")
    ] = False,
    names: Annotated[
        bool, option("--names", "Print only the lines that allranks.yaml needs for this machine to resolve all names.")
    ] = False,
    workspace: FolderOption = None,
    format: FormatOption = "text",
    json: JsonOption = False,
) -> None:
    """Check a pipeline, job, component or schedule without running it.

    Print every problem, and exit with 2 if there are any. For several files, also print a line with each result. Azure
    ML, azure-ai-ml or the designer reject a problem, and so does `allranks run`. They accept a warning, which probably
    does not do what was intended, such as a key that azure-ai-ml drops; a run prints it too. Advice makes components
    easier to use in the designer, such as descriptions; only --strict lists it. `allranks why --codes` lists the rules.
    A comment `# allranks: ignore RULE` ignores a finding on its line, or in the whole file if it is above all content,
    unless azure-ai-ml rejects it. For a pipeline, problems of its components and of its steps' sizes are warnings.
    Requirements that this machine does not meet, such as a package, mpirun or an asset of a workspace, are listed
    separately and are not errors. --json, which is --format json, prints an object, or an array of one per file. In the
    other formats, files are relative to the root of the repository. With sarif and junit, the text goes to standard
    error.

    --names lists the registered components, data, environments and models that this machine cannot resolve, each with
    the places that refer to it. Add the lines to allranks.yaml, and complete their paths.
    """
    values = settings_of(settings) | stand_ins_of(stand_ins)
    if (values or names) and len(files) > 1:
        where = "--set" if values else "--names"
        raise InputError(Problem(where, f"{len(files)} files are given", "one file with a pipeline or job"))
    format = one_format(format, json)
    if names:
        _print_names(files[0], values, Workspace.at(workspace))
        return
    results = [result_of(file, values, strict) for file in files]
    found = Findings(tuple(problem for result in results for problem in result.findings.found))
    if format == "json":
        objects = [{"file": each.file, **each.findings.by_kind(), "left_out": each.left_out} for each in results]
        print(to_json(objects if len(files) > 1 else objects[0]))
    print_report(format, [checked for result in results for checked in result.checked])
    if format in ("json", "github"):
        sys.exit(2 if found.errors else 0)
    print_warnings(found.warnings)
    print_machine(found.machine)
    for text in dict.fromkeys(text for result in results for text in result.left_out):
        errors().print(without_controls(text), style="bright_black", soft_wrap=True)
    for result in results if format == "text" else ():
        if len(results) > 1 or not result.findings.errors:
            console().print(without_controls(str(result)), soft_wrap=True)
    raise_any(found.errors)


def result_of(file: str, values: dict[str, str], strict: bool) -> Result:
    """Check one file or folder. values: inputs of its job; strict: whether warnings and advice are errors"""
    in_tables = list(variants.refresh_below(Path(file)))  # before specs are looked for
    try:
        specs = _specs(Path(file), values)
    except InputError as error:
        # which are errors in any case
        return Result(file, (), (CheckedFiles(file, (), Findings((*in_tables, *error.problems))),))
    components, schedules = (list(specs.components), specs.schedules) if specs else ([], ())
    found = [*in_tables, *check_specs(components).found]
    found += (problem for schedule in schedules for problem in _of_schedule(schedule))
    parts = [CheckedFiles(file, (*map(str, components), *map(str, schedules)), Findings(tuple(found)))]
    plans: list[Plan] = []
    for job in [file] if specs is None else (*map(str, specs.jobs), *specs.pipelines):
        checked = jobs.check(job, values)
        plans += checked.plans
        of_components = (problem for plan in checked.plans for problem in _of_their_components(plan, components))
        path = job if os.path.exists(job) else job.partition(":")[0]
        parts.append(CheckedFiles(path, (path,), Findings((*checked.found, *of_components))))
    if specs is None:
        content = [plans[0].name] if len(plans) == 1 else [count(len(plans), "job")] if plans else []
        content += [count(sum(1 for plan in plans for _ in steps(plan.graph)), "step")] if plans else []
    else:
        kinds = {"component": components, "job": specs.jobs, "pipeline": specs.pipelines, "schedule": schedules}
        content = [count(len(of_kind), noun) for noun, of_kind in kinds.items() if of_kind]
    if strict:
        parts = [replace(part, findings=part.findings.strict()) for part in parts]
    return Result(file, tuple(content), tuple(parts), tuple(text for plan in plans for text in left_out(plan)))


def _specs(path: Path, values: dict[str, str]) -> SpecFiles | None:
    """Return the specs in a folder, or of a component's or a schedule's file; None for the file of a job.

    values: those of --set, which only a job accepts

    Raise InputError for a folder without any spec.
    """
    kind = spec_files.kind(path) if path.is_file() else None
    if not path.is_dir() and kind in (None, Kind.JOB):
        return None
    if values:
        raise InputError(Problem("--set", f"{path} is not a pipeline", "a file with one pipeline or job"))
    if not path.is_dir():
        return SpecFiles(schedules=(path,)) if kind is Kind.SCHEDULE else SpecFiles((path,))
    specs = spec_files.below(path)
    if specs == SpecFiles():
        expected = "components, jobs, schedules, or functions with @dsl.pipeline in this folder or below"
        fix = "name the file, if it is a notebook or creates its job in another way"
        raise InputError(Problem(str(path), "it contains no component, no job and no pipeline", expected, fix))
    return specs


def _of_schedule(file: Path) -> Iterator[Problem]:
    with session(client=False):
        try:
            find_schedules(file)
        except InputError as error:
            yield from error.problems


def _of_their_components(plan: Plan, checked: Sequence[Path]) -> Iterator[Problem]:
    """Yield the problems of the local components that the plan uses and that are not in `checked`.

    Errors that prevent the job from running are errors of the plan, so errors of its components are warnings.
    """
    known = {path.resolve() for path in checked}
    specs = dict.fromkeys(Path(shown(step.spec)) for _, step in steps(plan.graph) if step.spec)
    others = (spec for spec in specs if spec.resolve() not in known)
    unchecked = [spec for spec in others if spec_files.kind(spec) is Kind.COMPONENT]
    for problem in check_specs(unchecked, by_themselves=False).found:
        if problem.rule == "component-variables":
            continue  # the plan has this warning at each step
        yield replace(problem, level=Level.WARNING) if problem.level is Level.ERROR else problem


def _print_names(file: str, values: dict[str, str], workspace: Workspace) -> None:
    """Print the lines of allranks.yaml that a pipeline needs and does not have."""
    other_problems = 0
    lookup = lookup_of(file, values, registered.of(workspace))
    with opened(file, values, lookup) as job:
        try:
            job.plan()
        except InputError as error:
            # Reading the job may have made the place of a name's problem more exact.
            of_names = {replace(problem, where="") for problem in lookup.problems}
            other_problems = sum(replace(problem, where="") not in of_names for problem in error.problems)
    made = interpreters.find_venv
    missing = skeleton(
        use for use in lookup.uses if use.asset.kind != asset_id.ENVIRONMENT or not made(use.asset.name, lookup.folder)
    )
    if not missing:
        errors().print(f"this machine can resolve every name in {file}", soft_wrap=True)
    else:
        print(missing, end="")
    if other_problems:
        errors().print(f"{count(other_problems, 'other problem')}: allranks check {file}", soft_wrap=True)
