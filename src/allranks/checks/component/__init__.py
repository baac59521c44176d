"""Check how Azure ML runs a component, and how its designer displays it.

Each rule is a function of a `Subject`: a spec as written, with the line of each key.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from allranks.checks import Findings, Row, rules_of
from allranks.checks import plan as plan_checks
from allranks.checks.component import environment, identity, inputs_and_outputs, values
from allranks.checks.component.subject import Subject, read_python, read_yaml
from allranks.checks.plan.scope import of_plan
from allranks.checks.plan.steps import DOCKERFILE_MISSING
from allranks.errors import InputError, Problem, Rule
from allranks.plan.graph import Step
from allranks.plan.reader import nodes
from allranks.sdk.rules import COUNT_BINDING, ENVIRONMENT_EMPTY, bound_counts, count_problem
from allranks.sdk.session import quiet, session
from allranks.sdk.specs import load
from allranks.sdk.suppressions import Suppressions
from allranks.sdk.yaml_lines import REPEATED_KEY, UNQUOTED_VALUE

MODULE = Rule.named("module-missing")


def layout(subject: Subject) -> Iterator[Problem]:
    """Report bindings, which azure-ai-ml accepts only on the steps of a pipeline."""
    sections = {"resources": subject.resources, "distribution": subject.distribution}
    return (count_problem(subject.place(*keys), value) for keys, value in bound_counts(sections))


OF_COMPONENTS = (
    Row(identity.name, identity.NAME),
    Row(identity.version, identity.VERSION_MISSING, identity.VERSION_NUMBER, identity.VERSION),
    Row(identity.display_name, identity.DISPLAY_NAME),
    Row(identity.description, identity.DESCRIPTION),
    Row(identity.tags, identity.TAG_TEXT),
    Row(inputs_and_outputs.names, inputs_and_outputs.PORT_NAME, inputs_and_outputs.PORT_NAME_CASE),
    Row(inputs_and_outputs.types, inputs_and_outputs.PORT_TYPE),
    Row(inputs_and_outputs.descriptions, inputs_and_outputs.PORT_DESCRIPTION),
    Row(inputs_and_outputs.optional_marks, inputs_and_outputs.OPTIONAL_MARK),
    Row(values.ranges, values.RANGE_BOUND, values.RANGE_ORDER),
    Row(values.enums, values.ENUM_OF_DATA, values.ENUM_LIST, values.ENUM_TYPE),
    Row(
        values.defaults,
        *(values.DEFAULT_OF_DATA, values.DEFAULT_TYPE, values.DEFAULT_CHANGED),
        *(values.DEFAULT_ENUM, values.DEFAULT_RANGE),
    ),
    Row(lambda subject: subject.warnings, REPEATED_KEY, UNQUOTED_VALUE),
)

OF_COMMANDS = (
    Row(inputs_and_outputs.command_exists, inputs_and_outputs.COMMAND_MISSING),
    Row(inputs_and_outputs.unread, inputs_and_outputs.PORT_UNUSED),
    Row(inputs_and_outputs.unknown, inputs_and_outputs.PORT_UNKNOWN),
    Row(inputs_and_outputs.optional_uses, inputs_and_outputs.OPTIONAL_UNGUARDED),
    Row(inputs_and_outputs.variables, inputs_and_outputs.COMPONENT_VARIABLES),
    Row(
        environment.environment,
        *(environment.ENVIRONMENT_MISSING, environment.ENVIRONMENT_FILE, environment.ENVIRONMENT_REFERENCE),
        *(environment.ENVIRONMENT_UNKNOWN, ENVIRONMENT_EMPTY, DOCKERFILE_MISSING),
    ),
    Row(environment.requirement_tags, environment.REQUIREMENT_TAG),
    Row(environment.packages_of_choices, environment.REQUIREMENT_PACKAGE),
    Row(environment.launch, environment.REQUIREMENT_LAUNCH),
    Row(layout, COUNT_BINDING),
    Row(identity.determinism, identity.DETERMINISM_UNSET),
)
"""Additional rules for a component with a command. A pipeline component has none."""

OF_ALL = (Row(identity.unique_names, identity.DUPLICATE_NAME),)
"""Rules of all components that are checked together."""


def catalogue() -> tuple[Rule, ...]:
    """Return every rule about components. Those of pipelines apply to a component by itself too."""
    own = (*rules_of(OF_COMPONENTS, OF_COMMANDS, OF_ALL), MODULE)
    of_plans = (COUNT_BINDING, ENVIRONMENT_EMPTY, DOCKERFILE_MISSING, REPEATED_KEY, UNQUOTED_VALUE)
    return tuple(rule for rule in own if rule not in of_plans)


def check(specs: Sequence[Path], *, by_themselves: bool = True) -> Findings:
    """Return what is wrong with the components of these specs, with file and line.

    by_themselves: whether to find common mistakes of jobs too. The check of a plan finds those of its steps

    Includes what azure-ai-ml itself rejects. What a comment ignores is left out. Azure is not contacted.
    """
    subjects: list[Subject] = []
    found: list[Problem] = []
    if not specs:
        return Findings()
    with session(client=False):
        for spec in specs:
            of_spec, problems = _of_spec(spec, by_themselves=by_themselves)
            subjects += of_spec
            found += problems
    found += (problem for row in OF_ALL for problem in row(subjects))
    return Findings(Suppressions().remaining(found))


def of_subject(subject: Subject) -> list[Problem]:
    """Return what the rules find in one component."""
    table = OF_COMPONENTS if subject.is_pipeline else OF_COMPONENTS + OF_COMMANDS
    return [problem for row in table for problem in row(subject)]


def _of_spec(spec: Path, *, by_themselves: bool) -> tuple[list[Subject], list[Problem]]:
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
    return subjects, [*found, *_of_sdk(sdk_problems, Findings(tuple(found)).errors, spec)]


def _mistakes_of_jobs(component: Any, subject: Subject) -> Iterator[Problem]:
    """Yield common mistakes of jobs in a component by itself, such as a launcher inside a launcher.

    They are those of a step that uses the component and sets nothing. What a component leaves to its steps, such as the
    size of /dev/shm if it has no resources, is not a mistake of its own. A pipeline component is checked by its steps.

    component: as the SDK has loaded it
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
    for problem in plan_checks.of_keys(of_plan(plan), step):
        keys = problem.where.split(".")
        if keys[0] != "resources" or subject.resources:
            yield replace(problem, where=subject.place(*keys))


def _of_sdk(sdk_problems: Sequence[Problem], found: Sequence[Problem], spec: Path) -> Iterator[Problem]:
    """Yield the SDK's problems that no rule reported. The SDK reports the same mistakes differently, often without a
    line. found: the errors that rules reported"""
    places = {problem.where for problem in found}
    for problem in sdk_problems:
        if problem.where.partition(", key ")[0] in places or (found and problem.where == str(spec)):
            continue
        if problem.found.startswith("ModuleNotFoundError"):
            yield from MODULE.mark([replace(problem, fix=MODULE.fix)])
        else:
            yield from plan_checks.SDK.mark([problem])
