"""Check that the environment of a component exists and has the packages for every choice, without contacting Azure."""

import dataclasses
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from allranks.checks.component.subject import Subject
from allranks.contract.distributions import DISTRIBUTIONS
from allranks.contract.requirements import LAUNCH, REQUIRES, launch_problem, requirements
from allranks.contract.single import Single
from allranks.errors import InputError, Problem, did_you_mean
from allranks.images.find import REGISTERED, environments_folder
from allranks.plan.environment import packages
from allranks.sdk.specs import environment_name
from allranks.sdk.yaml_lines import read_mapping

CURATED = "AzureML-"
_NAMED = re.compile(r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:[:@](?P<version>[A-Za-z0-9][A-Za-z0-9._-]*))")
_REGISTRY = re.compile(r"azureml://registries/[^/\s]+/environments/[^/\s]+/(versions|labels)/[^/\s]+")
_FORMS = "azureml:NAME:VERSION, azureml:NAME@latest, azureml://registries/REGISTRY/environments/NAME/versions/VERSION"


def environment(subject: Subject) -> Iterator[Problem]:
    if not subject.needs_environment:
        return
    value = subject.environment
    keys = ("environment",)
    if value is None or value == "":
        yield subject.report("environment-missing", keys, "no environment", "the image that the code runs in")
    elif isinstance(value, Path):
        if not os.path.isfile(value):
            yield subject.report("environment-file", keys, f"{value} is not there", "an environment's file")
    elif isinstance(value, str):
        yield from _reference(subject, value)
    else:
        yield from _inline(subject, value)


def _reference(subject: Subject, reference: str) -> Iterator[Problem]:
    if _REGISTRY.fullmatch(reference) or re.match(r"(azureml:)?/subscriptions/", reference):
        return
    match = _NAMED.fullmatch(reference.removeprefix("azureml:"))
    if not match:
        yield subject.report("environment-reference", ("environment",), f"environment {reference!r}", _FORMS)
        return
    registered = registered_names(subject.path)
    if not registered or match["name"] in registered or match["name"].startswith(CURATED):
        return
    fix = did_you_mean(match["name"], registered)
    expected = f"one of environments/ ({', '.join(sorted(registered))}), a curated one, or one of a registry"
    yield subject.report("environment-unknown", ("environment",), f"no environment {match['name']!r}", expected, fix)


def _inline(subject: Subject, settings: Any) -> Iterator[Problem]:
    """Check an inline environment. settings: the mapping of a YAML file, or the SDK's environment of a function"""
    build = _get(settings, "build")
    if build is None and not _get(settings, "image"):
        found = "an environment without image and build"
        yield subject.report("environment-empty", ("environment",), found, "one of them")
    folder = _get(settings, "path") or _get(build, "path")
    file = str(_get(build, "dockerfile_path") or "Dockerfile")
    if folder and "://" not in str(folder) and not os.path.isfile(Path(folder) / file):
        yield subject.report("dockerfile-missing", ("environment",), f"no {file} in {folder}", "a build context")


def _get(settings: Any, key: str) -> Any:
    return settings.get(key) if isinstance(settings, dict) else getattr(settings, key, None)


def registered_names(path: Path) -> set[str]:
    """Return the names under which the environments of the project around a file are registered."""
    try:
        root = environments_folder(path.parent)
    except InputError:
        return set()
    return {name for file in sorted(root.glob(f"*/{REGISTERED}")) if (name := environment_name(file))}


def requirement_tags(subject: Subject) -> Iterator[Problem]:
    """Check that tags with requirements name choices of the component."""
    choices = {port.name: [str(value) for value in port.enum or ()] for port in subject.inputs}
    for tag in subject.tags:
        first, *rest = str(tag).split(".", 2)
        if first != REQUIRES or not rest:
            continue
        if len(rest) != 2 or rest[0] not in choices or rest[1] not in choices[rest[0]]:
            expected = f"{REQUIRES}.INPUT.VALUE, with a value of the input's enum"
            yield subject.report("requirement-tag", ("tags", str(tag)), f"tag {tag}", expected)


def packages_of_choices(subject: Subject) -> Iterator[Problem]:
    """Check that the environment has the packages for every choice."""
    available = packages(environment_folder(subject.environment))
    if available is None:
        return
    choices = {port.name: [str(value) for value in port.enum or ()] for port in subject.inputs}
    for each in requirements({str(tag): str(text) for tag, text in subject.tags.items()}, choices):
        missing = ", ".join(each.missing(available))
        if missing and not each.input:
            found, fix = f"it does not have {missing}", f"add {missing} to the environment, or use another one"
            yield subject.report("requirement-package", ("environment",), found, f"tag {each.tag}", fix)
        elif missing and each.value in choices.get(each.input, ()):
            found = f"{each.value}, which needs {missing}; the environment does not have it"
            fix = f"remove {each.value}; a variant with another environment can offer it"
            yield subject.report("requirement-package", ("inputs", each.input, "enum"), found, "choices that work", fix)


def launch(subject: Subject) -> Iterator[Problem]:
    """Check that the distribution fits the component's launch."""
    settings = subject.distribution
    kind = DISTRIBUTIONS.get(str(settings.get("type", "")).lower())
    names = {field.name for field in dataclasses.fields(kind)} if kind else set()
    counts = {name: value for name, value in settings.items() if name in names and isinstance(value, int)}
    problem = launch_problem(str(subject.tags.get(LAUNCH, "")), kind(**counts) if kind else Single())
    if problem is not None:
        yield dataclasses.replace(problem, where=subject.place(*problem.where.split(".")))


def environment_folder(environment: Any) -> str:
    """Return the build context of a component's environment on this machine; "" if it has none."""
    if isinstance(environment, Path):
        try:
            build, base = read_mapping(environment).get("build"), environment.parent
        except InputError:  # `environment` reports it
            return ""
    else:
        build, base = _get(environment, "build"), Path(getattr(environment, "base_path", None) or "")
    path = _get(build, "path")
    return str(base / str(path)) if path and "://" not in str(path) else ""
