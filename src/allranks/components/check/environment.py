"""Check that the environment of a component exists, without contacting Azure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from allranks.components.check.subject import Finding, Subject
from allranks.environments.files import name_in
from allranks.environments.find import REGISTERED, environments_folder
from allranks.errors import InputError

CURATED = "AzureML-"
_NAMED = re.compile(r"(?:azureml:)?(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:[:@](?P<version>[A-Za-z0-9][A-Za-z0-9._-]*))")
_REGISTRY = re.compile(r"azureml://registries/[^/\s]+/environments/[^/\s]+/(versions|labels)/[^/\s]+")
_FORMS = "azureml:NAME:VERSION, azureml:NAME@latest, azureml://registries/REGISTRY/environments/NAME/versions/VERSION"


def environment(subject: Subject) -> Iterator[Finding]:
    if not subject.needs_environment:
        return
    value = subject.environment
    keys = ("environment",)
    if value is None or value == "":
        yield subject.error(keys, "no environment", "the image that the code runs in", f"name one: {_FORMS}")
    elif isinstance(value, Path):
        if not value.is_file():
            fix = "correct the path, or write the environment's file"
            yield subject.error(keys, f"{value} is not there", "an environment's file", fix)
    elif isinstance(value, str):
        yield from _reference(subject, value)
    else:
        yield from _inline(subject, value)


def _reference(subject: Subject, reference: str) -> Iterator[Finding]:
    if _REGISTRY.fullmatch(reference) or re.match(r"(azureml:)?/subscriptions/", reference):
        return
    match = _NAMED.fullmatch(reference)
    if not match:
        yield subject.error(("environment",), f"environment {reference!r}", _FORMS, "correct the reference")
        return
    registered = registered_names(subject.path)
    if not registered or match["name"] in registered or match["name"].startswith(CURATED):
        return
    near = get_close_matches(match["name"], registered, n=1)
    fix = f"did you mean {near[0]}?" if near else "add its folder to environments/, or use one of a registry"
    expected = f"one of environments/ ({', '.join(sorted(registered))}), a curated one, or one of a registry"
    yield subject.error(("environment",), f"no environment {match['name']!r}", expected, fix)


def _inline(subject: Subject, settings: Any) -> Iterator[Finding]:
    """Check an inline environment. settings: the mapping of a YAML file, or the SDK's environment of a function"""
    build = _get(settings, "build")
    if build is None and not _get(settings, "image"):
        yield subject.error(("environment",), "an environment without image and build", "one of them", "add it")
    folder = _get(settings, "path") or _get(build, "path")
    file = str(_get(build, "dockerfile_path") or "Dockerfile")
    if folder and "://" not in str(folder) and not (Path(folder) / file).is_file():
        fix = "correct the path, or write the Dockerfile"
        yield subject.error(("environment",), f"no {file} in {folder}", "a build context", fix)


def _get(settings: Any, key: str) -> Any:
    return settings.get(key) if isinstance(settings, dict) else getattr(settings, key, None)


def registered_names(path: Path) -> set[str]:
    """Return the names under which the environments of the project around a file are registered."""
    try:
        root = environments_folder(path.parent)
    except InputError:
        return set()
    return {name for file in sorted(root.glob(f"*/{REGISTERED}")) if (name := name_in(file))}
