"""Read the environment of a step, with digests of its files."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem, StepPlace, finding
from allranks.plan import digest
from allranks.plan.assets import asset_id
from allranks.plan.assets.mapping_file import interpreter_in
from allranks.plan.environment import NO_ENVIRONMENT, Environment, registered
from allranks.plan.reader.context import Context
from allranks.sdk import specs, yaml_lines
from allranks.sdk.compilation import environment_request
from allranks.sdk.paths import shown
from allranks.sdk.request import EnvironmentRequest
from allranks.sdk.uploads import DOCKERFILE, context_of


def local(environment: EnvironmentRequest | str | None, place: StepPlace, context: Context) -> Environment:
    """Return the environment of a step; for a registered one, the definition or virtual environment to which
    ``allranks.yaml`` maps it."""
    if not isinstance(environment, str) or context.lookup is None:
        return read(environment, place, context)
    if (created := context.lookup.entity(environment, asset_id.ENVIRONMENT)) is not None:
        return read(environment_request(created), place, context)
    path = None
    with context.problems:
        path = context.lookup.find(environment, asset_id.ENVIRONMENT, place.key("environment"), required=False)
        if path is not None and os.path.isfile(path):
            return of_file(Path(path), place, context)
    return replace(registered(environment), interpreter=str(interpreter_in(path)) if path else "")


def read(environment: EnvironmentRequest | str | None, place: StepPlace, context: Context) -> Environment:
    """Return the environment of a request; `NO_ENVIRONMENT` for None."""
    if environment is None:
        return NO_ENVIRONMENT
    if isinstance(environment, str):
        return registered(environment)
    # The SDK drops the name of an environment in a file.
    name = environment.name or str((environment.conda or {}).get("name") or "") or _name_in_file(environment)
    definition = json.dumps(environment.conda, sort_keys=True, default=str) if environment.conda else ""
    folder = environment.folder
    if not environment.context and not environment.image:
        found = "an environment without image and build"
        context.problems.append(finding("environment-empty", place.key("environment"), found, "one of them"))
    return Environment(
        name=name,
        version=environment.version,
        image=environment.image,
        conda=_short_digest(digest.of_text(definition)) if definition else "",
        # A build context that is not on this machine is identified by its location.
        context=_digest(folder, place, context) if folder and context.snapshots else environment.context,
        dockerfile=(environment.dockerfile or DOCKERFILE) if environment.context else "",
        folder=str(folder or ""),
        definition=definition,
        file=environment.conda_file or environment.file,
    )


def _name_in_file(environment: EnvironmentRequest) -> str:
    """Return the name of an environment in its own file, which the SDK drops; "" if it has none.

    The file is the one that the step names, or environment.yaml next to the Dockerfile, since mldesigner drops the
    name."""
    files = [Path(environment.file)] if environment.file else []
    if environment.folder is not None:
        files.append(environment.folder / "environment.yaml")
    return next((name for file in files if (name := specs.environment_name(file))), "")


def of_folder(folder: Path, place: StepPlace, context: Context) -> Environment:
    """Return the environment of a build context."""
    name = specs.environment_name(folder / "environment.yaml")
    return Environment(name, context=_digest(folder, place, context), dockerfile=DOCKERFILE, folder=str(folder))


def of_file(path: Path, place: StepPlace, context: Context) -> Environment:
    """Return the environment that a file describes: one of Azure ML, a conda file, or a requirements file (.txt). Raise
    InputError if it describes none."""
    if path.suffix == ".txt":
        return _package_environment({"dependencies": [{"pip": [f"-r {path}"]}]}, path)
    tree = yaml_lines.parse(path).tree
    if "dependencies" in tree:
        return _package_environment(tree, path)
    return read(environment_request(specs.load_environment(path)), place, context)


def _package_environment(specification: Mapping[str, Any], path: Path) -> Environment:
    text = json.dumps(specification, sort_keys=True, default=str)
    name = str(specification.get("name") or path.stem)
    return Environment(name, conda=_short_digest(digest.of_text(text)), definition=text, file=str(path))


def _digest(folder: Path, place: StepPlace, context: Context) -> str:
    try:
        return _short_digest(digest.of_files(context_of(folder, place.key("environment.build.path")).files))
    except InputError as error:
        context.problems += error.problems
        return ""
    except OSError as error:
        found = f"{shown(folder)} cannot be read: {error.strerror}"
        context.problems.append(Problem(place.key("environment.build.path"), found, "a folder with a Dockerfile"))
        return ""


def _short_digest(digest: str) -> str:
    return digest[:16]
