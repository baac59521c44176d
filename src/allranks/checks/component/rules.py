"""The table of rules, and how they are applied to specs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from allranks.checks import plan as plan_check
from allranks.checks.component import (
    choices,
    determinism,
    environment,
    identity,
    mistakes,
    order,
    ports,
    python_subject,
    use,
    values,
    yaml_subject,
)
from allranks.checks.component.subject import Subject
from allranks.checks.plan.ignore import Ignored
from allranks.checks.plan.rule import Findings, Level, Rule, rules_in
from allranks.errors import InputError, Problem
from allranks.sdk.quick_nodes import quiet
from allranks.sdk.session import session
from allranks.sdk.specs import load

RULES: tuple[Callable[[Subject], Iterator[Problem]], ...] = (
    identity.name,
    identity.version,
    identity.display_name,
    identity.description,
    identity.tags,
    ports.names,
    ports.types,
    ports.descriptions,
    ports.optional_marks,
    values.ranges,
    values.enums,
    values.defaults,
    order.order,
)
"""The rules for every component."""

COMMAND_RULES: tuple[Callable[[Subject], Iterator[Problem]], ...] = (
    use.command,
    use.unread,
    use.unknown,
    use.optional_uses,
    use.variables,
    environment.environment,
    choices.tags,
    choices.packages_of_choices,
    choices.launch,
    mistakes.layout,
    determinism.determinism,
)
"""Additional rules for a component with a command. A pipeline component has none."""


MODULE = Rule(
    "module-missing",
    Level.MACHINE,
    "A component in Python imports a module that this machine does not have.",
    "what importing the file raises here",
    "install it next to allranks to check the file",
)

CATALOGUE: tuple[Rule, ...] = (
    *rules_in((identity, ports, values, order, use, environment, choices, determinism)),
    MODULE,
)
"""Every rule about components, for docs/checks.md."""


_RULES_OF_FINDINGS = (*CATALOGUE, *plan_check.CATALOGUE)
"""The rules that have a finding in a component."""


def check(specs: Sequence[Path], *, by_themselves: bool = True) -> Findings:
    """Return what is wrong with the components of these specs, with file and line.

    by_themselves: whether to find common mistakes of jobs too. The check of a plan finds those of its steps

    Includes what azure-ai-ml itself rejects. Warnings and advice that a comment ignores are left out. Azure is not
    contacted.
    """
    subjects: list[Subject] = []
    findings: list[Problem] = []
    if not specs:
        return Findings()
    with session(client=False):
        for spec in specs:
            of_spec, found = _of_spec(spec, by_themselves=by_themselves)
            subjects += of_spec
            findings += found
    return Findings.of((*findings, *identity.unique_names(subjects)), _RULES_OF_FINDINGS, Ignored().remaining)


def of_subject(subject: Subject) -> list[Problem]:
    """Return what the rules find in one component."""
    rules = RULES if subject.is_pipeline else RULES + COMMAND_RULES
    return [finding for rule in rules for finding in rule(subject)]


def _of_spec(spec: Path, *, by_themselves: bool) -> tuple[list[Subject], list[Problem]]:
    subjects: list[Subject] = []
    components: list[Any] = []
    sdk_problems: tuple[Problem, ...] = ()
    try:
        if spec.suffix != ".py":
            subjects = [yaml_subject.read(spec)]
        with quiet():
            components = load(spec)
        if spec.suffix == ".py":
            subjects = python_subject.read(spec, components)
    except InputError as error:
        sdk_problems = error.problems
    findings = [finding for subject in subjects for finding in of_subject(subject)]
    if by_themselves and not sdk_problems:
        for component, subject in zip(components, subjects, strict=True):
            findings += mistakes.of_component(component, subject)
    errors = Findings.of(findings, _RULES_OF_FINDINGS, list).errors
    return subjects, [
        *findings,
        *(_of_sdk(problem) for problem in _not_reported_yet(sdk_problems, errors, spec)),
    ]


def _of_sdk(problem: Problem) -> Problem:
    if problem.found.startswith("ModuleNotFoundError"):
        return replace(problem, fix=MODULE.fix, rule=MODULE.code)
    return replace(problem, rule=plan_check.SDK.code)


def _not_reported_yet(sdk_problems: Sequence[Problem], problems: Sequence[Problem], spec: Path) -> Iterator[Problem]:
    """Yield the SDK's problems that no rule reported. The SDK reports the same mistakes differently, often without a
    line."""
    places = {problem.where for problem in problems}
    for problem in sdk_problems:
        if problem.where.partition(", key ")[0] not in places and not (problems and problem.where == str(spec)):
            yield problem
