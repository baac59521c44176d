"""The rules of environments: files for `az ml environment create`, conda files and Dockerfiles.

Nothing is expected of them but what Azure ML needs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from allranks.checks.plan.settings import CONDA, IMAGE, is_moving
from allranks.errors import InputError, Problem, Rule
from allranks.images.find import REGISTERED
from allranks.images.packages import conda_problems
from allranks.sdk import bounded_yaml, internals, validation_errors
from allranks.sdk.build_context import DOCKERFILE, dockerfile_text
from allranks.sdk.session import quiet
from allranks.sdk.spec_files import files_below
from allranks.sdk.validation_errors import unknown_key
from allranks.sdk.yaml_lines import at, read_mapping
from allranks.secrets import is_secret_name, secrets_in

_SCHEMA = "environment.schema"


def environment_files(path: Path) -> tuple[Path, ...]:
    """Return a file itself, or the files below a folder that describe environments, by path."""
    if not os.path.isdir(path):
        return (path,)
    return tuple(file for file in files_below(path, ".yaml", ".yml", with_code=True) if _is_environment(file))


def is_template(value: object) -> bool:
    """Return whether a text has a placeholder such as ``{{asset.name}}``, which a tool replaces before Azure ML."""
    return "{{" in str(value)


def _is_environment(file: Path) -> bool:
    try:
        document: Any = bounded_yaml.load_file(file)
    except (OSError, ValueError, yaml.YAMLError):
        return file.name == REGISTERED
    if not isinstance(document, dict):
        return False
    if _SCHEMA in str(document.get("$schema", "")).lower():
        return True
    has_source = isinstance(document.get("image"), str) or isinstance(document.get("build"), dict)
    return "name" in document and has_source and not {"type", "command", "jobs", "services", "spec"} & document.keys()


_VALIDATE = "azure-ai-ml, `entities/_assets/environment.py`, Environment.validate"

REFUSED = Rule.error(
    "environment-refused",
    "azure-ai-ml does not load the environment's file.",
    "azure-ai-ml, load_environment, which `az ml environment create` runs too",
    "correct the file",
)
NO_NAME = Rule.error("environment-name", "The environment has no name.", _VALIDATE, "add: name: NAME")
SOURCE = Rule.error(
    "environment-source",
    "The environment has neither an image nor a build context, or both.",
    _VALIDATE,
    "write either image or build",
)
CONTEXT = Rule.error(
    "environment-context",
    "The build context, or its Dockerfile, does not exist.",
    'Microsoft Learn, "CLI (v2) environment YAML schema": build.path, and build.dockerfile_path, by default Dockerfile',
    "correct the path, or write the Dockerfile",
)
CONDA_WITH_BUILD = Rule.warning(
    "conda-with-build",
    "The environment has a conda file and a build context. The image is built from the context only.",
    'Microsoft Learn, "CLI (v2) environment YAML schema": conda_file is for environments with an image',
    "install the packages in the Dockerfile, or use an image",
)


def registration(file: Path, document: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what Azure ML would refuse. file: the environment's file; document: its content"""
    if not document.get("name"):
        yield NO_NAME.problem(at(file, "name"), "no name", "the name under which it is registered")
        return
    image, build = document.get("image"), document.get("build")
    if bool(image) == bool(build):
        found = "image and build" if image else "neither image nor build"
        yield SOURCE.problem(at(file, "build" if build else "image"), found, "one of the two")
        return
    if isinstance(image, str) and not is_template(image) and is_moving(image):
        yield IMAGE.problem(at(file, "image"), f"image {image}", "an image that does not change")
    if isinstance(build, dict):
        yield from _build_context(file, build)
        if document.get("conda_file"):
            yield CONDA_WITH_BUILD.problem(at(file, "conda_file"), "conda_file and build", "one of them")
    yield from refused(file, document)


def _build_context(file: Path, build: Mapping[str, Any]) -> Iterator[Problem]:
    path, name = build.get("path"), str(build.get("dockerfile_path") or DOCKERFILE)
    if not isinstance(path, str) or "://" in path or is_template(path):
        return
    folder = file.parent / path
    if not os.path.isdir(folder):
        yield CONTEXT.problem(at(file, "build", "path"), f"{path} is not a folder", "the folder with the Dockerfile")
    elif not is_template(name) and not os.path.isfile(folder / name):
        key = "dockerfile_path" if "dockerfile_path" in build else "path"
        yield CONTEXT.problem(at(file, "build", key), f"no {name} in {path}", "a Dockerfile in the build context")


def refused(file: Path, document: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield why azure-ai-ml does not load an environment's file. Missing files are reported by other rules."""
    if keys := list(validation_errors.misspelt("environment", document)):
        misspelt = (unknown_key(f"{at(file, *key.split('.'))}, key {key}", meant) for key, meant in keys)
        yield from REFUSED.mark(misspelt)  # the SDK reports an unknown key too, without a suggestion
        return
    if is_template(document.get("name")) or is_template(document.get("build")):
        return
    try:
        with quiet():
            internals.load_environment(file).validate()
    except OSError:
        return
    # The SDK's errors have no common class; any of them means that it would not register this.
    except Exception as error:
        for key, message in validation_errors.messages_of(error):
            if not message.endswith(" does not exist"):
                where = f"{at(file, *key.split('.'))}, key {key}" if key else str(file)
                yield REFUSED.problem(where, message, "what its schema accepts")


CONDA_FILE = Rule.error(
    "conda-file",
    "The conda file does not exist, or is not a YAML mapping.",
    "azure-ai-ml, `entities/_assets/environment.py`, Environment.conda_file",
    "correct the path, or write the file",
)


def conda(file: Path, document: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with the conda specification that an environment's file names or contains."""
    value = document.get("conda_file")
    if isinstance(value, dict):
        yield from CONDA.mark(conda_problems(value, file))
    elif isinstance(value, str) and value and not is_template(value):
        path = file.parent / value.removeprefix("file:")
        if not os.path.isfile(path):
            yield CONDA_FILE.problem(at(file, "conda_file"), f"{value} does not exist", "a conda file")
            return
        try:
            specification = read_mapping(path)
        except InputError as error:
            yield from CONDA_FILE.mark(error.problems)
            return
        yield from CONDA.mark(conda_problems(specification, path))


NO_STAGE = Rule.error(
    "dockerfile",
    "The Dockerfile has no FROM, or cannot be read.",
    "Docker, Dockerfile reference: a Dockerfile must begin with a FROM instruction",
    "add: FROM IMAGE",
)
SECRET = Rule.warning(
    "image-secret",
    "A file of the build context has a secret. Everyone who can pull the image can read it.",
    'Docker, "Build secrets": build arguments and environment variables remain in the image',
    "remove it, create a new one, and pass it to the build as a secret mount or to the job as a variable",
)


_FROM = re.compile(r"^FROM +(?:--\S+ +)*(?P<image>\S+)(?: +AS +(?P<stage>\S+))?", re.MULTILINE | re.IGNORECASE)


def build_context(file: Path, document: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what is wrong with the build context of an environment, if it is on this machine."""
    build = document.get("build")
    path = build.get("path") if isinstance(build, dict) else None
    if not isinstance(build, dict) or not isinstance(path, str) or "://" in path or is_template(path):
        return
    folder = file.parent / path
    dockerfile = folder / str(build.get("dockerfile_path") or DOCKERFILE)
    if not os.path.isfile(dockerfile):
        return
    try:
        stages = list(_FROM.finditer(dockerfile_text(dockerfile)))
    except InputError as error:
        yield from NO_STAGE.mark(error.problems)
        return
    if not stages:
        yield NO_STAGE.problem(str(dockerfile), "no FROM", "at least one stage")
    names = {"scratch", *(stage["stage"] for stage in stages)}
    for number, line in enumerate(dockerfile.read_text(encoding="utf-8").splitlines(), 1):
        image = match["image"] if (match := _FROM.match(line)) else ""
        if image not in names and not is_template(image) and is_moving(image):
            yield IMAGE.problem(f"{dockerfile}:{number}", f"FROM {image}", "an image that does not change")
    yield from _secrets(folder, dockerfile.name)


_SETTING = re.compile(r"^\s*(?:ARG|ENV)\s+(?P<settings>\S.*)", re.IGNORECASE)
_PAIR = re.compile(r"(\w+)=[^\s$]")
_OLD_PAIR = re.compile(r"(\w+)\s+[^\s$]")
"""``ENV NAME value``, which Docker still accepts."""
_SEARCHED = (".in", ".sh", ".txt", ".yaml", ".yml")


def _secrets(folder: Path, dockerfile: str) -> Iterator[Problem]:
    """Yield a problem for each secret in a line, and for each variable of the image that is named like a secret."""
    for path in sorted(folder.iterdir()):
        if path.name != dockerfile and path.suffix not in _SEARCHED:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            names = _secret_names(line) if path.name == dockerfile else []
            kinds = [f"a value for {name}" for name in names] or sorted(set(secrets_in(line).values()))
            yield from (SECRET.problem(f"{path}:{number}", kind, "an image without secrets") for kind in kinds)


def _secret_names(line: str) -> list[str]:
    """Return the secret-like names that a line of a Dockerfile sets to a value."""
    setting = _SETTING.match(line)
    if setting is None:
        return []
    first = _OLD_PAIR.match(setting["settings"])
    names = [first[1]] if first else _PAIR.findall(setting["settings"])
    return [name for name in names if is_secret_name(name)]
