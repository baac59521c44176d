"""Check that the environment of a component exists, without contacting Azure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from allranks.checks.component.subject import Subject
from allranks.checks.plan.rule import Level, Rule
from allranks.environments.find import REGISTERED, environments_folder, name_in
from allranks.errors import InputError, Problem, did_you_mean

CURATED = "AzureML-"
_NAMED = re.compile(r"(?:azureml:)?(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)(?:[:@](?P<version>[A-Za-z0-9][A-Za-z0-9._-]*))")
_REGISTRY = re.compile(r"azureml://registries/[^/\s]+/environments/[^/\s]+/(versions|labels)/[^/\s]+")
_FORMS = "azureml:NAME:VERSION, azureml:NAME@latest, azureml://registries/REGISTRY/environments/NAME/versions/VERSION"

ENVIRONMENT_MISSING = Rule(
    "environment-missing",
    Level.ERROR,
    "A component that runs code has no environment.",
    'Microsoft Learn, "CLI (v2) command component YAML schema": environment is required',
    f"name one: {_FORMS}",
)
ENVIRONMENT_FILE = Rule(
    "environment-file",
    Level.ERROR,
    "The environment's file does not exist.",
    "azure-ai-ml, `_schema/core/fields.py`, FileRefField",
    "correct the path, or write the environment's file",
)
ENVIRONMENT_REFERENCE = Rule(
    "environment-reference",
    Level.ERROR,
    "The reference to a registered environment has none of the forms that Azure ML reads.",
    "azure-ai-ml, `operations/_operation_orchestrator.py`, OperationOrchestrator.get_asset_arm_id",
    "correct the reference",
)
ENVIRONMENT_UNKNOWN = Rule(
    "environment-unknown",
    Level.WARNING,
    "The project has a folder environments/, and it has none of that name. The workspace may have one.",
    "[environments.md](environments.md): `allranks register` registers the environments of this folder",
    "add its folder to environments/, or use one of a registry",
)
ENVIRONMENT_EMPTY = Rule(
    "environment-empty",
    Level.ERROR,
    "An inline environment has neither an image nor a build context.",
    "azure-ai-ml, `entities/_assets/environment.py`, Environment.validate",
    "add image or build",
)
DOCKERFILE_MISSING = Rule(
    "dockerfile-missing",
    Level.ERROR,
    "The build context has no Dockerfile.",
    'Microsoft Learn, "CLI (v2) environment YAML schema": build.dockerfile_path, by default Dockerfile',
    "correct the path, or write the Dockerfile",
)


def environment(subject: Subject) -> Iterator[Problem]:
    if not subject.needs_environment:
        return
    value = subject.environment
    keys = ("environment",)
    if value is None or value == "":
        yield subject.report(ENVIRONMENT_MISSING, keys, "no environment", "the image that the code runs in")
    elif isinstance(value, Path):
        if not value.is_file():
            yield subject.report(ENVIRONMENT_FILE, keys, f"{value} is not there", "an environment's file")
    elif isinstance(value, str):
        yield from _reference(subject, value)
    else:
        yield from _inline(subject, value)


def _reference(subject: Subject, reference: str) -> Iterator[Problem]:
    if _REGISTRY.fullmatch(reference) or re.match(r"(azureml:)?/subscriptions/", reference):
        return
    match = _NAMED.fullmatch(reference)
    if not match:
        yield subject.report(ENVIRONMENT_REFERENCE, ("environment",), f"environment {reference!r}", _FORMS)
        return
    registered = registered_names(subject.path)
    if not registered or match["name"] in registered or match["name"].startswith(CURATED):
        return
    fix = did_you_mean(match["name"], registered)
    expected = f"one of environments/ ({', '.join(sorted(registered))}), a curated one, or one of a registry"
    yield subject.report(ENVIRONMENT_UNKNOWN, ("environment",), f"no environment {match['name']!r}", expected, fix)


def _inline(subject: Subject, settings: Any) -> Iterator[Problem]:
    """Check an inline environment. settings: the mapping of a YAML file, or the SDK's environment of a function"""
    build = _get(settings, "build")
    if build is None and not _get(settings, "image"):
        yield subject.report(
            ENVIRONMENT_EMPTY, ("environment",), "an environment without image and build", "one of them"
        )
    folder = _get(settings, "path") or _get(build, "path")
    file = str(_get(build, "dockerfile_path") or "Dockerfile")
    if folder and "://" not in str(folder) and not (Path(folder) / file).is_file():
        yield subject.report(DOCKERFILE_MISSING, ("environment",), f"no {file} in {folder}", "a build context")


def _get(settings: Any, key: str) -> Any:
    return settings.get(key) if isinstance(settings, dict) else getattr(settings, key, None)


def registered_names(path: Path) -> set[str]:
    """Return the names under which the environments of the project around a file are registered."""
    try:
        root = environments_folder(path.parent)
    except InputError:
        return set()
    return {name for file in sorted(root.glob(f"*/{REGISTERED}")) if (name := name_in(file))}
