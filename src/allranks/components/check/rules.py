"""The table of rules, and how they are applied to specs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from allranks.components.check import (
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
from allranks.components.check.subject import Finding, Subject
from allranks.errors import InputError, Problem
from allranks.plan.check import SDK
from allranks.plan.check.ignore import Ignored
from allranks.plan.check.rule import Level, Rule, rules_in
from allranks.sdk.quick_nodes import quiet
from allranks.sdk.session import session
from allranks.sdk.specs import load

RULES: tuple[Callable[[Subject], Iterator[Finding]], ...] = (
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

COMMAND_RULES: tuple[Callable[[Subject], Iterator[Finding]], ...] = (
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


@dataclass(frozen=True)
class Findings:
    """What checking components has found, by its level."""

    errors: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()
    advice: tuple[Problem, ...] = ()
    machine: tuple[Problem, ...] = ()

    @classmethod
    def of(cls, findings: Iterable[Finding]) -> Findings:
        """Return findings by their level, each in its order."""
        problems: dict[Level, list[Problem]] = {level: [] for level in Level}
        for finding in findings:
            problems[finding.level].append(finding.problem)
        return cls(*(tuple(problems[level]) for level in Level))


def check(specs: Sequence[Path], *, by_themselves: bool = True) -> Findings:
    """Return what is wrong with the components of these specs, with file and line.

    by_themselves: whether to find common mistakes of jobs too. The check of a plan finds those of its steps

    Includes what azure-ai-ml itself rejects. Warnings and advice that a comment ignores are left out. Azure is not
    contacted.
    """
    subjects: list[Subject] = []
    findings: list[Finding] = []
    if not specs:
        return Findings()
    with session(client=False):
        for spec in specs:
            of_spec, found = _of_spec(spec, by_themselves=by_themselves)
            subjects += of_spec
            findings += found
    ignored = Ignored()
    return Findings.of(
        finding
        for finding in (*findings, *identity.unique_names(subjects))
        if finding.level is Level.ERROR or any(ignored.remaining([finding.problem]))
    )


def of_subject(subject: Subject) -> list[Finding]:
    """Return what the rules find in one component."""
    rules = RULES if subject.is_pipeline else RULES + COMMAND_RULES
    return [finding for rule in rules for finding in rule(subject)]


def _of_spec(spec: Path, *, by_themselves: bool) -> tuple[list[Subject], list[Finding]]:
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
    errors = Findings.of(findings).errors
    return subjects, [
        *findings,
        *(_of_sdk(problem) for problem in _not_reported_yet(sdk_problems, errors, spec)),
    ]


def _of_sdk(problem: Problem) -> Finding:
    rule = MODULE if problem.found.startswith("ModuleNotFoundError") else SDK
    return Finding(rule, replace(problem, fix=MODULE.fix if rule is MODULE else problem.fix, rule=rule.code))


def _not_reported_yet(sdk_problems: Sequence[Problem], problems: Sequence[Problem], spec: Path) -> Iterator[Problem]:
    """Yield the SDK's problems that no rule reported. The SDK reports the same mistakes differently, often without a
    line."""
    places = {problem.where for problem in problems}
    for problem in sdk_problems:
        if problem.where.partition(", key ")[0] not in places and not (problems and problem.where == str(spec)):
            yield problem
