"""Read the environment of a step, with digests of its files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.plan import digest
from allranks.plan.assets import asset_id
from allranks.plan.assets.mapping_file import interpreter_in
from allranks.plan.environment import NO_ENVIRONMENT, Environment, registered
from allranks.plan.reader.context import Context, Place
from allranks.plan.rules import ENVIRONMENT_EMPTY
from allranks.sdk import internals, specs, yaml_lines
from allranks.sdk.paths import is_remote, shown
from allranks.sdk.uploads import context_of

_DOCKERFILE = "Dockerfile"


def local(environment: Any, place: Place, context: Context) -> Environment:
    """Return the local environment for a registered one: the definition or virtual environment in ``allranks.yaml``;
    otherwise as `read`."""
    if not isinstance(environment, str) or context.lookup is None:
        return read(environment, place, context)
    if (created := context.lookup.entity(environment, asset_id.ENVIRONMENT)) is not None:
        return read(created, place, context)
    try:
        path = context.lookup.find(environment, asset_id.ENVIRONMENT, place.key("environment"), required=False)
        if path is not None and os.path.isfile(path):
            return of_file(Path(path), place, context)
    except InputError as error:
        context.problems += error.problems
        path = None
    return replace(registered(environment), interpreter=str(interpreter_in(path)) if path else "")


def read(environment: Any, place: Place, context: Context) -> Environment:
    """Return the environment of a step in the SDK, or `NO_ENVIRONMENT`."""
    if environment is None:
        return NO_ENVIRONMENT
    if isinstance(environment, str):
        return registered(environment)
    name, version = "", ""
    if environment.name and not internals.is_anonymous(environment):
        name, version = str(environment.name), str(environment.version or "")
    elif isinstance(environment.conda_file, dict) and environment.conda_file.get("name"):
        # The SDK drops the name of an environment that is given as a file.
        name = str(environment.conda_file["name"])
    else:
        name = _name_in_file(environment)
    conda = definition = ""
    if environment.conda_file:
        definition = json.dumps(environment.conda_file, sort_keys=True, default=str)
        conda = _short(digest.of_text(definition))
    has_build = environment.build is not None
    if not has_build and not environment.image:
        found = "an environment without image and build"
        context.problems.append(ENVIRONMENT_EMPTY.problem(place.key("environment"), found, "one of them"))
    return Environment(
        name=name,
        version=version,
        image=str(environment.image or ""),
        conda=conda,
        context=_context(environment, place, context) if has_build else "",
        dockerfile=str(environment.build.dockerfile_path or _DOCKERFILE) if has_build else "",
        folder=_folder(environment) if has_build else "",
        definition=definition,
        file=internals.conda_path(environment) or internals.source_path(environment),
    )


def _name_in_file(environment: Any) -> str:
    """Return the name of an environment in its own file, which the SDK drops too; "" if it has none.

    The file is the one that the step names, or environment.yaml next to the Dockerfile, because mldesigner drops it.
    """
    files = [Path(source)] if (source := internals.source_path(environment)) else []
    if environment.build is not None and not is_remote(str(environment.build.path)):
        files.append(Path(environment.base_path, str(environment.build.path), "environment.yaml"))
    return next((name for file in files if (name := specs.environment_name(file))), "")


def of_folder(folder: Path, place: Place, context: Context) -> Environment:
    """Return the environment of a build context, as `read` returns it for only the context."""
    name = specs.environment_name(folder / "environment.yaml")
    return Environment(name, context=_digest(folder, place, context), dockerfile=_DOCKERFILE, folder=str(folder))


def of_file(path: Path, place: Place, context: Context) -> Environment:
    """Return the environment that a file describes: one of Azure ML, a conda file, or a requirements file (.txt). Raise
    InputError if it describes none."""
    if path.suffix == ".txt":
        return _of_packages({"dependencies": [{"pip": [f"-r {path}"]}]}, path)
    tree = yaml_lines.parse(path).tree
    return _of_packages(tree, path) if "dependencies" in tree else read(specs.load_environment(path), place, context)


def _of_packages(specification: Mapping[str, Any], path: Path) -> Environment:
    text = json.dumps(specification, sort_keys=True, default=str)
    name = str(specification.get("name") or path.stem)
    return Environment(name, conda=_short(digest.of_text(text)), definition=text, file=str(path))


def _context(environment: Any, place: Place, context: Context) -> str:
    """Return the digest of the build context, or its location if that is not on this machine."""
    path = str(environment.build.path)
    if is_remote(path) or context.snapshots is None:
        return path
    return _digest(Path(environment.base_path, path), place, context)


def _digest(folder: Path, place: Place, context: Context) -> str:
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


def _folder(environment: Any) -> str:
    path = str(environment.build.path)
    return "" if is_remote(path) else str(Path(environment.base_path, path))


def _short(digest: str) -> str:
    return digest[:16]
