"""Check components: how Azure ML runs them, and how its designer displays them.

Each function takes a `Subject`: a spec as written, with the line of each key.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from allranks.checks import Findings, Table, apply
from allranks.checks import plan as plan_checks
from allranks.checks.component import designer, environment, identity, inputs_and_outputs
from allranks.checks.component.subject import Subject, read_python, read_yaml
from allranks.checks.plan.scope import of_plan
from allranks.errors import InputError, Problem, Rule
from allranks.plan.graph import Step
from allranks.plan.reader import nodes
from allranks.sdk.session import quiet, session
from allranks.sdk.specs import load
from allranks.sdk.suppressions import remaining
from allranks.sdk.unsendable import bound_counts, count_problem


def layout(subject: Subject) -> Iterator[Problem]:
    """Report bindings, which azure-ai-ml accepts only on the steps of a pipeline."""
    sections = {"resources": subject.resources, "distribution": subject.distribution}
    return (count_problem(subject.place(*keys), value) for keys, value in bound_counts(sections))


OF_COMPONENTS: Table = (
    (identity.name, "component-name"),
    (identity.version, "version-characters"),
    (identity.display_name, "display-name"),
    (identity.description, "description"),
    (identity.tags, "tag-text"),
    (inputs_and_outputs.names, "port-name"),
    (inputs_and_outputs.types, "port-type"),
    (inputs_and_outputs.descriptions, "port-description"),
    (inputs_and_outputs.optional_marks, "optional-mark"),
    (inputs_and_outputs.ranges, "range-bound"),
    (inputs_and_outputs.enums, "enum-type"),
    (inputs_and_outputs.defaults, "default-type"),
    (designer.registration, "ui-type"),
    (designer.boolean_defaults, "ui-boolean-default"),
    (lambda subject: subject.warnings, "unquoted-value"),
)

OF_COMMANDS: Table = (
    (designer.reserved_names, "reserved-name"),
    (designer.continued_lines, "line-continuation"),
    (inputs_and_outputs.command_exists, "command-missing"),
    (inputs_and_outputs.unread, "port-unused"),
    (inputs_and_outputs.unknown, "port-unknown"),
    (inputs_and_outputs.optional_uses, "optional-unguarded"),
    (inputs_and_outputs.variables, "component-variables"),
    (environment.environment, "environment-missing"),
    (environment.requirement_tags, "requirement-tag"),
    (environment.packages_of_choices, "requirement-package"),
    (environment.launch, "requirement-launch"),
    (layout, "count-binding"),
    (identity.determinism, "determinism-unset"),
)
"""Additional rules for components with a command. Pipeline components have none."""

OF_ALL: Table = ((identity.unique_names, "duplicate-name"),)
"""Rules for all components that are checked together."""


def check(specs: Sequence[Path], *, by_themselves: bool = True) -> Findings:
    """Check the components of these specs, without contacting Azure. The findings have a file and a line.

    by_themselves: whether to also find common mistakes of jobs, which the check of a plan finds in its steps

    The findings include those of azure-ai-ml, and exclude those that a comment ignores.
    """
    subjects: list[Subject] = []
    found: list[Problem] = []
    if not specs:
        return Findings()
    with session(client=False):
        for spec in specs:
            of_spec, problems = _check_spec(spec, by_themselves=by_themselves)
            subjects += of_spec
            found += problems
    found += apply(OF_ALL, subjects)
    return Findings(remaining(found))


def of_subject(subject: Subject) -> list[Problem]:
    """Return the findings in one component."""
    of_commands = () if subject.is_pipeline else OF_COMMANDS
    return [*apply(OF_COMPONENTS, subject), *apply(of_commands, subject)]


def _check_spec(spec: Path, *, by_themselves: bool) -> tuple[list[Subject], list[Problem]]:
    subjects: list[Subject] = []
    components: list[Any] = []
    sdk_problems: tuple[Problem, ...] = ()
    try:
        if spec.suffix != ".py":
            subjects = [read_yaml(spec)]
        with quiet():
            components = load(spec)
        if spec.suffix == ".py":
            subjects = read_python(spec, components)
    except InputError as error:
        sdk_problems = error.problems
    found = [problem for subject in subjects for problem in of_subject(subject)]
    if by_themselves and not sdk_problems:
        for component, subject in zip(components, subjects, strict=True):
            found += _mistakes_of_jobs(component, subject)
    return subjects, [*found, *_sdk_problems(sdk_problems, Findings(tuple(found)).errors, spec)]


def _mistakes_of_jobs(component: Any, subject: Subject) -> Iterator[Problem]:
    """Yield common mistakes of jobs in a single component, such as a launcher inside a launcher.

    They are the mistakes of a step that uses the component and sets nothing, except for settings that the component
    leaves to its steps, such as the size of /dev/shm if it has no resources. A pipeline component is checked by its
    steps.

    component: as loaded by the SDK
    """
    plan = nodes.read_component(component, subject.path)
    if plan is None:
        return
    if subject.is_pipeline:
        found = plan_checks.findings(plan)
        yield from (*found.warnings, *found.advice)
        return
    (step,) = plan.graph.nodes
    assert isinstance(step, Step)
    for problem in apply(plan_checks.OF_KEYS, of_plan(plan), step):
        keys = problem.where.split(".")
        if keys[0] != "resources" or subject.resources:
            yield replace(problem, where=subject.place(*keys))


def _sdk_problems(sdk_problems: Sequence[Problem], found: Sequence[Problem], spec: Path) -> Iterator[Problem]:
    """Yield the SDK's problems that no rule reported. The SDK reports the same mistakes differently, often without a
    line.

    found: errors that rules reported
    """
    places = {problem.where for problem in found}
    for problem in sdk_problems:
        if problem.where.partition(", key ")[0] in places or (found and problem.where == str(spec)):
            continue
        if problem.found.startswith("ModuleNotFoundError"):
            yield from Rule.named("module-missing").mark([replace(problem, fix=Rule.named("module-missing").fix)])
        else:
            yield from Rule.named("azure-ai-ml").mark([problem])
