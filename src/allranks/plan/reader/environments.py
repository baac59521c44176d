"""The environment of a step: what it names, with digests of what it is made from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from allranks.errors import InputError, Problem
from allranks.plan import digest
from allranks.plan.environment import NO_ENVIRONMENT, Environment, registered
from allranks.plan.reader.context import Context, Place
from allranks.sdk.paths import is_remote, shown
from allranks.sdk.uploads import context_of


def read(environment: Any, place: Place, context: Context) -> Environment:
    """Return the environment that the SDK has for a step, or `NO_ENVIRONMENT`."""
    if environment is None:
        return NO_ENVIRONMENT
    if isinstance(environment, str):
        return registered(environment)
    name, version = "", ""
    if environment.name and not environment._is_anonymous:
        name, version = str(environment.name), str(environment.version or "")
    elif isinstance(environment.conda_file, dict) and environment.conda_file.get("name"):
        # The SDK forgets the name of an environment that is named by its file.
        name = str(environment.conda_file["name"])
    else:
        name = _name_in_file(environment)
    conda = ""
    if environment.conda_file:
        conda = _short(digest.of_text(json.dumps(environment.conda_file, sort_keys=True, default=str)))
    built = environment.build is not None
    return Environment(
        name=name,
        version=version,
        image=str(environment.image or ""),
        conda=conda,
        context=_context(environment, place, context) if built else "",
        dockerfile=str(environment.build.dockerfile_path or "Dockerfile") if built else "",
    )


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


def _context(environment: Any, place: Place, context: Context) -> str:
    """The digest of the build context, or where it is if that is not on this machine."""
    path = str(environment.build.path)
    if is_remote(path) or context.snapshots is None:
        return path
    folder = Path(environment.base_path, path)
    try:
        files = context_of(folder, place.key("environment.build.path")).files
        content = (part for name, file in files.items() for part in (name, digest.of_path(file)))
        return _short(digest.of_text(*content))
    except InputError as error:
        context.problems += error.problems
        return ""
    except OSError as error:
        found = f"{shown(folder)} cannot be read: {error.strerror}"
        context.problems.append(Problem(place.key("environment.build.path"), found, "a folder with a Dockerfile"))
        return ""


def _short(digest: str) -> str:
    return digest[:16]
