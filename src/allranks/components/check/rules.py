"""The table of rules, and how they are applied to specs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from allranks.components.check import (
    choices,
    determinism,
    environment,
    identity,
    order,
    ports,
    python_subject,
    use,
    values,
    yaml_subject,
)
from allranks.components.check.subject import Subject
from allranks.errors import InputError, Problem
from allranks.sdk.session import session
from allranks.sdk.specs import load, quiet

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
    determinism.determinism,
)
"""Additional rules for a component with a command. A pipeline component has none."""


def check(specs: Sequence[Path]) -> list[Problem]:
    """Return every problem of the components of these specs, with file and line.

    Includes what azure-ai-ml itself rejects. Azure is not contacted.
    """
    subjects: list[Subject] = []
    problems: list[Problem] = []
    if not specs:
        return []
    with session(client=False):
        for spec in specs:
            spec_subjects, spec_problems = _of_spec(spec)
            subjects += spec_subjects
            problems += spec_problems
    return [*problems, *identity.unique_names(subjects)]


def of_subject(subject: Subject) -> list[Problem]:
    """Return the problems that the rules find in one component."""
    rules = RULES if subject.is_pipeline else RULES + COMMAND_RULES
    return [problem for rule in rules for problem in rule(subject)]


def _of_spec(spec: Path) -> tuple[list[Subject], list[Problem]]:
    subjects: list[Subject] = []
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
    problems = [problem for subject in subjects for problem in of_subject(subject)]
    return subjects, [*problems, *_not_reported_yet(sdk_problems, problems, spec)]


def _not_reported_yet(sdk_problems: Sequence[Problem], problems: Sequence[Problem], spec: Path) -> Iterator[Problem]:
    """Yield the SDK's problems that no rule reported. The SDK reports the same mistakes differently, often without a
    line."""
    places = {problem.where for problem in problems}
    for problem in sdk_problems:
        if problem.where.partition(", key ")[0] not in places and not (problems and problem.where == str(spec)):
            yield problem
