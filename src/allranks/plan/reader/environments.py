"""The environment of a step as a text: what it names, with a digest of what it is made from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from allranks.errors import InputError, Problem
from allranks.plan import digest
from allranks.plan.assets import asset_id
from allranks.plan.assets.lookup import interpreter_in
from allranks.plan.reader.context import Context, Place
from allranks.sdk import complaints, yaml_text
from allranks.sdk.paths import is_remote, shown


def local(environment: Any, place: Place, context: Context) -> tuple[str, str]:
    """Return what `described` says of the environment that this machine has in place of a registered one, and the
    interpreter of a virtual environment; "" where the environment itself is described."""
    if not isinstance(environment, str) or context.lookup is None:
        return described(environment, place, context), ""
    try:
        path = context.lookup.find(environment, asset_id.ENVIRONMENT, place.key("environment"), required=False)
        if path is not None and path.is_file():
            return described(_loaded(path), place, context), ""
    except InputError as error:
        context.problems += error.problems
        path = None
    return described(environment, place, context), str(interpreter_in(path)) if path else ""


def _loaded(path: Path) -> Any:
    """The SDK's environment of a file. Raises InputError where it describes none."""
    from azure.ai.ml import load_environment

    yaml_text.parse(path)
    try:
        return load_environment(path)
    except Exception as error:
        found = f"it describes no environment: {complaints.one_line(error)}"
        raise InputError(Problem(shown(path), found, "name, with image or build")) from None


def described(environment: Any, place: Place, context: Context) -> str:
    """Such as ``azureml:torch:3`` or ``torch:3, image python:3.12, conda 1f0c...``; empty where there is none."""
    if environment is None:
        return ""
    if isinstance(environment, str):
        return environment if environment.startswith("azureml:") else f"azureml:{environment}"
    parts = []
    if environment.name and not environment._is_anonymous:
        parts.append(f"{environment.name}:{environment.version}" if environment.version else environment.name)
    elif isinstance(environment.conda_file, dict) and environment.conda_file.get("name"):
        # The SDK forgets the name of an environment that is named by its file.
        parts.append(str(environment.conda_file["name"]))
    elif name := _name_in_file(environment):
        parts.append(name)
    if environment.image:
        parts.append(f"image {environment.image}")
    if environment.conda_file:
        conda = json.dumps(environment.conda_file, sort_keys=True, default=str)
        parts.append(f"conda {_short(digest.of_text(conda))}")
    if environment.build is not None:
        parts.append(_build(environment, place, context))
    return ", ".join(part for part in parts if part)


def _name_in_file(environment: Any) -> str:
    """The name that an environment has in its own file, which the SDK forgets too; "" where it has none.

    The file is the one that the step names, or environment.yaml beside the Dockerfile: mldesigner's do not know theirs.
    """
    files = [environment._source_path] if environment._source_path else []
    if environment.build is not None and not is_remote(str(environment.build.path)):
        files.append(Path(environment.base_path, str(environment.build.path), "environment.yaml"))
    return next((name for file in files if (name := _name_in(Path(file)))), "")


def _name_in(file: Path) -> str:
    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return ""
    # A job or a component that has the environment within it has a name too, and it is another thing's.
    its_own = isinstance(found, dict) and {"build", "image"} & found.keys() and not {"command", "jobs"} & found.keys()
    return str(found.get("name") or "") if its_own else ""


def _build(environment: Any, place: Place, context: Context) -> str:
    path = str(environment.build.path)
    if is_remote(path) or context.snapshots is None:
        return f"build {path}"
    folder = Path(environment.base_path, path)
    dockerfile = environment.build.dockerfile_path or "Dockerfile"
    try:
        return f"build {_short(digest.of_path(folder))} {dockerfile}"
    except OSError as error:
        found = f"{shown(folder)} cannot be read: {error.strerror}"
        context.problems.append(Problem(place.key("environment.build.path"), found, "a folder with a Dockerfile"))
        return ""


def _short(digest: str) -> str:
    return digest[:16]
