"""Check that every choice that a component offers can work in its environment, and that its launch fits."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from allranks.checks.component.subject import Subject
from allranks.checks.plan.rule import Level, Rule
from allranks.contract.distributions import DISTRIBUTIONS
from allranks.contract.requirements import LAUNCH, REQUIRES, launch_problem, requirements
from allranks.contract.single import Single
from allranks.errors import InputError, Problem
from allranks.plan.requirement_files import packages
from allranks.sdk.yaml_lines import read_mapping

_TAGS = "the component's own tags, [components.md](components.md): allranks checks them before each run"

REQUIREMENT_TAG = Rule(
    "requirement-tag",
    Level.ERROR,
    f"A tag {REQUIRES}.INPUT.VALUE names no choice of the component.",
    _TAGS,
    "name an input and one of its values",
)
REQUIREMENT_PACKAGE = Rule(
    "requirement-package",
    Level.ERROR,
    "The environment lacks a package that the component, or one of its choices, requires by a tag.",
    _TAGS,
    "add the package to the environment, or use another one",
)
REQUIREMENT_LAUNCH = Rule(
    "requirement-launch",
    Level.ERROR,
    f"The distribution is not one that the component's tag {LAUNCH} allows.",
    _TAGS,
    "change the distribution",
)


def tags(subject: Subject) -> Iterator[Problem]:
    """Check that the tags with requirements name choices of the component."""
    choices = {port.name: [str(value) for value in port.enum or ()] for port in subject.inputs}
    for tag in subject.tags:
        first, *rest = str(tag).split(".", 2)
        if first != REQUIRES or not rest:
            continue
        if len(rest) != 2 or rest[0] not in choices or rest[1] not in choices[rest[0]]:
            expected = f"{REQUIRES}.INPUT.VALUE, with a value of the input's enum"
            yield subject.report(REQUIREMENT_TAG, ("tags", str(tag)), f"tag {tag}", expected)


def packages_of_choices(subject: Subject) -> Iterator[Problem]:
    """Check that the environment has the packages of every choice."""
    available = packages(environment_folder(subject.environment))
    if available is None:
        return
    choices = {port.name: [str(value) for value in port.enum or ()] for port in subject.inputs}
    for each in requirements({str(tag): str(text) for tag, text in subject.tags.items()}, choices):
        missing = ", ".join(each.missing(available))
        if missing and not each.input:
            fix = f"add {missing} to the environment, or use another one"
            yield subject.report(
                REQUIREMENT_PACKAGE, ("environment",), f"it does not have {missing}", f"tag {each.tag}", fix
            )
        elif missing and each.value in choices.get(each.input, ()):
            found = f"{each.value}, which needs {missing}; the environment does not have it"
            fix = f"remove {each.value}; a variant with another environment can offer it"
            yield subject.report(REQUIREMENT_PACKAGE, ("inputs", each.input, "enum"), found, "choices that work", fix)


def launch(subject: Subject) -> Iterator[Problem]:
    """Check that the distribution is one that the component's launch can read."""
    settings = subject.distribution
    kind = DISTRIBUTIONS.get(str(settings.get("type", "")).lower())
    names = {field.name for field in dataclasses.fields(kind.settings)} if kind else set()
    counts = {name: value for name, value in settings.items() if name in names and isinstance(value, int)}
    problem = launch_problem(str(subject.tags.get(LAUNCH, "")), kind.settings(**counts) if kind else Single())
    if problem is not None:
        yield subject.report(
            REQUIREMENT_LAUNCH, tuple(problem.where.split(".")), problem.found, problem.expected, problem.fix
        )


def environment_folder(environment: Any) -> str:
    """Return the build context of a component's environment on this machine; "" if it has none."""
    if isinstance(environment, Path):
        try:
            build = read_mapping(environment).get("build")
        except InputError:  # `environment` reports it
            return ""
        path = build.get("path") if isinstance(build, dict) else None
        return str(environment.parent / path) if isinstance(path, str) and "://" not in path else ""
    build = environment.get("build") if isinstance(environment, dict) else getattr(environment, "build", None)
    path = build.get("path") if isinstance(build, dict) else getattr(build, "path", None)
    if not path or "://" in str(path):
        return ""
    return str(Path(getattr(environment, "base_path", None) or "", str(path)))
