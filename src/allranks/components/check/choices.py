"""Check that every choice that a component offers can work in its environment, and that its launch fits."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from allranks.components.check.subject import Finding, Subject
from allranks.contract.distributions import DISTRIBUTIONS
from allranks.contract.requirements import LAUNCH, REQUIRES, launch_problem, requirements
from allranks.contract.single import Single
from allranks.errors import InputError
from allranks.plan.requirement_files import packages
from allranks.sdk.yaml_lines import read_mapping


def tags(subject: Subject) -> Iterator[Finding]:
    """Check that the tags with requirements name choices of the component."""
    choices = {port.name: [str(value) for value in port.enum or ()] for port in subject.inputs}
    for tag in subject.tags:
        first, *rest = str(tag).split(".", 2)
        if first != REQUIRES or not rest:
            continue
        if len(rest) != 2 or rest[0] not in choices or rest[1] not in choices[rest[0]]:
            expected = f"{REQUIRES}.INPUT.VALUE, with a value of the input's enum"
            yield subject.error(("tags", str(tag)), f"tag {tag}", expected, "name an input and one of its values")


def packages_of_choices(subject: Subject) -> Iterator[Finding]:
    """Check that the environment has the packages of every choice."""
    available = packages(environment_folder(subject.environment))
    if available is None:
        return
    choices = {port.name: [str(value) for value in port.enum or ()] for port in subject.inputs}
    for each in requirements({str(tag): str(text) for tag, text in subject.tags.items()}, choices):
        missing = ", ".join(each.missing(available))
        if missing and not each.input:
            fix = f"add {missing} to the environment, or use another one"
            yield subject.error(("environment",), f"it does not have {missing}", f"tag {each.tag}", fix)
        elif missing and each.value in choices.get(each.input, ()):
            found = f"{each.value}, which needs {missing}; the environment does not have it"
            fix = f"remove {each.value}; a variant with another environment can offer it"
            yield subject.error(("inputs", each.input, "enum"), found, "choices that work", fix)


def launch(subject: Subject) -> Iterator[Finding]:
    """Check that the distribution is one that the component's launch can read."""
    settings = subject.distribution
    kind = DISTRIBUTIONS.get(str(settings.get("type", "")).lower())
    names = {field.name for field in dataclasses.fields(kind.settings)} if kind else set()
    counts = {name: value for name, value in settings.items() if name in names and isinstance(value, int)}
    problem = launch_problem(str(subject.tags.get(LAUNCH, "")), kind.settings(**counts) if kind else Single())
    if problem is not None:
        yield subject.error(tuple(problem.where.split(".")), problem.found, problem.expected, problem.fix)


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
