"""Check the environments of any project: files for `az ml environment create`, conda files and Dockerfiles."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from allranks.checks import Findings, Table, apply
from allranks.checks.plan.settings import is_moving
from allranks.errors import InputError, Problem, Rule, finding
from allranks.images.find import REGISTERED
from allranks.images.packages import conda_problems
from allranks.sdk import bounded_yaml, internals, validation_errors
from allranks.sdk.session import quiet
from allranks.sdk.spec_files import files_below
from allranks.sdk.suppressions import remaining
from allranks.sdk.uploads import DOCKERFILE, dockerfile_text
from allranks.sdk.validation_errors import unknown_key
from allranks.sdk.yaml_lines import at, read_mapping
from allranks.secrets import is_secret_name, secrets_in

_SCHEMA = "environment.schema"


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


def registration(file: Path, document: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the errors that Azure ML would report. file: the environment's file; document: its content"""
    if not document.get("name"):
        yield finding("environment-name", at(file, "name"), "no name", "the name under which it is registered")
        return
    image, build = document.get("image"), document.get("build")
    if bool(image) == bool(build):
        found = "image and build" if image else "neither image nor build"
        yield finding("environment-source", at(file, "build" if build else "image"), found, "one of the two")
        return
    if isinstance(image, str) and not is_template(image) and is_moving(image):
        yield finding("latest-image", at(file, "image"), f"image {image}", "an image that does not change")
    if isinstance(build, dict) and document.get("conda_file"):
        yield finding("conda-with-build", at(file, "conda_file"), "conda_file and build", "one of them")
    yield from refused(file, document)


def refused(file: Path, document: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the errors of azure-ai-ml for an environment's file. Missing files are reported by other rules."""
    if keys := list(validation_errors.misspelt("environment", document)):
        misspelt = (unknown_key(f"{at(file, *key.split('.'))}, key {key}", meant) for key, meant in keys)
        # The SDK reports an unknown key too, without a suggestion.
        yield from Rule.named("environment-refused").mark(misspelt)
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
                yield finding("environment-refused", where, message, "what its schema accepts")


def conda(file: Path, document: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of the conda specification that an environment's file names or contains."""
    value = document.get("conda_file")
    if isinstance(value, dict):
        yield from Rule.named("conda-dependencies").mark(conda_problems(value, file))
    elif isinstance(value, str) and value and not is_template(value):
        path = file.parent / value.removeprefix("file:")
        if not os.path.isfile(path):
            yield finding("conda-file", at(file, "conda_file"), f"{value} does not exist", "a conda file")
            return
        try:
            specification = read_mapping(path)
        except InputError as error:
            yield from Rule.named("conda-file").mark(error.problems)
            return
        yield from Rule.named("conda-dependencies").mark(conda_problems(specification, path))


_FROM = re.compile(r"^FROM +(?:--\S+ +)*(?P<image>\S+)(?: +AS +(?P<stage>\S+))?", re.MULTILINE | re.IGNORECASE)


def build_context(file: Path, document: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of a build context on this machine."""
    build = document.get("build")
    path = build.get("path") if isinstance(build, dict) else None
    if not isinstance(build, dict) or not isinstance(path, str) or "://" in path or is_template(path):
        return
    folder, name = file.parent / path, str(build.get("dockerfile_path") or DOCKERFILE)
    dockerfile = folder / name
    if not os.path.isdir(folder):
        expected = "the folder with the Dockerfile"
        yield finding("environment-context", at(file, "build", "path"), f"{path} is not a folder", expected)
        return
    if not os.path.isfile(dockerfile):
        if not is_template(name):
            where = at(file, "build", "dockerfile_path" if "dockerfile_path" in build else "path")
            yield finding("environment-context", where, f"no {name} in {path}", "a Dockerfile in the build context")
        return
    try:
        stages = list(_FROM.finditer(dockerfile_text(dockerfile)))
    except InputError as error:
        yield from Rule.named("dockerfile").mark(error.problems)
        return
    if not stages:
        yield finding("dockerfile", str(dockerfile), "no FROM", "at least one stage")
    names = {"scratch", *(stage["stage"] for stage in stages)}
    for number, line in enumerate(dockerfile.read_text(encoding="utf-8").splitlines(), 1):
        image = match["image"] if (match := _FROM.match(line)) else ""
        if image not in names and not is_template(image) and is_moving(image):
            yield finding("latest-image", f"{dockerfile}:{number}", f"FROM {image}", "an image that does not change")
    yield from _secrets(folder, dockerfile.name)


_SETTING = re.compile(r"^\s*(?:ARG|ENV)\s+(?P<settings>\S.*)", re.IGNORECASE)
_PAIR = re.compile(r"(\w+)=[^\s$]")
_OLD_PAIR = re.compile(r"(\w+)\s+[^\s$]")
"""``ENV NAME value``, which Docker still accepts."""
_SEARCHED = (".in", ".sh", ".txt", ".yaml", ".yml")


def _secrets(folder: Path, dockerfile: str) -> Iterator[Problem]:
    """Yield a problem for each secret in a line, and for each variable of the image with the name of a secret."""
    for path in sorted(folder.iterdir()):
        if path.name != dockerfile and path.suffix not in _SEARCHED:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            names = _secret_names(line) if path.name == dockerfile else []
            kinds = [f"a value for {name}" for name in names] or sorted(set(secrets_in(line).values()))
            yield from (finding("image-secret", f"{path}:{number}", kind, "an image without secrets") for kind in kinds)


def _secret_names(line: str) -> list[str]:
    """Return the secret-like names that a line of a Dockerfile sets to a value."""
    setting = _SETTING.match(line)
    if setting is None:
        return []
    first = _OLD_PAIR.match(setting["settings"])
    names = [first[1]] if first else _PAIR.findall(setting["settings"])
    return [name for name in names if is_secret_name(name)]


TABLE: Table = (
    (registration, "environment-source"),
    (conda, "conda-file"),
    (build_context, "dockerfile"),
)


def check_files(path: Path) -> tuple[tuple[Path, ...], Findings]:
    """Return the files that describe environments at or below a path, and the findings that no comment ignores.

    Raise InputError if there is no environment.
    """
    found: tuple[Path, ...] = (path,)
    if os.path.isdir(path):
        files = files_below(path, ".yaml", ".yml", with_code=True)
        found = tuple(file for file in files if _is_environment(file))
    if not found:
        expected = "an environment's YAML with image or build, or a folder with some"
        raise InputError(Problem(str(path), "it contains no environment", expected, "name another path"))
    return found, Findings(remaining(problem for file in found for problem in _check_file(file)))


def _check_file(file: Path) -> Iterator[Problem]:
    try:
        document = read_mapping(file)
    except InputError as error:
        yield from Rule.named("environment-refused").mark(error.problems)
        return
    yield from apply(TABLE, file, document)
