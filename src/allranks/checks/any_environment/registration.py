"""Check what Azure ML needs to register an environment: a name, and either an image or a build context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from allranks.checks.any_environment.finding import is_template
from allranks.checks.plan.mistakes.latest import IMAGE, is_moving
from allranks.checks.plan.rule import Level, Rule
from allranks.errors import Problem
from allranks.sdk import complaints, known_keys
from allranks.sdk.messages import unknown_key
from allranks.sdk.quick_nodes import quiet
from allranks.sdk.yaml_lines import at

_VALIDATE = "azure-ai-ml, `entities/_assets/environment.py`, Environment.validate"

REFUSED = Rule(
    "environment-refused",
    Level.ERROR,
    "azure-ai-ml does not load the environment's file.",
    "azure-ai-ml, load_environment, which `az ml environment create` runs too",
    "correct the file",
)
NO_NAME = Rule("environment-name", Level.ERROR, "The environment has no name.", _VALIDATE, "add: name: NAME")
SOURCE = Rule(
    "environment-source",
    Level.ERROR,
    "The environment has neither an image nor a build context, or both.",
    _VALIDATE,
    "write either image or build",
)
CONTEXT = Rule(
    "environment-context",
    Level.ERROR,
    "The build context, or its Dockerfile, does not exist.",
    'Microsoft Learn, "CLI (v2) environment YAML schema": build.path, and build.dockerfile_path, by default Dockerfile',
    "correct the path, or write the Dockerfile",
)
CONDA_WITH_BUILD = Rule(
    "conda-with-build",
    Level.WARNING,
    "The environment has a conda file and a build context. The image is built from the context alone.",
    'Microsoft Learn, "CLI (v2) environment YAML schema": conda_file is for environments with an image',
    "install the packages in the Dockerfile, or use an image",
)


def problems(file: Path, document: Mapping[str, Any]) -> Iterator[Problem]:
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
        yield from _context(file, build)
        if document.get("conda_file"):
            yield CONDA_WITH_BUILD.problem(at(file, "conda_file"), "conda_file and build", "one of them")
    keys = list(known_keys.misspelt("environment", document))
    if keys:
        misspelt = (unknown_key(f"{at(file, *key.split('.'))}, key {key}", meant) for key, meant in keys)
        yield from REFUSED.mark(misspelt)
    else:
        yield from _loading(file, document)


def _context(file: Path, build: Mapping[str, Any]) -> Iterator[Problem]:
    path, name = build.get("path"), str(build.get("dockerfile_path") or "Dockerfile")
    if not isinstance(path, str) or "://" in path or is_template(path):
        return
    folder = file.parent / path
    if not folder.is_dir():
        yield CONTEXT.problem(at(file, "build", "path"), f"{path} is no folder", "the folder with the Dockerfile")
    elif not is_template(name) and not (folder / name).is_file():
        key = "dockerfile_path" if "dockerfile_path" in build else "path"
        yield CONTEXT.problem(at(file, "build", key), f"no {name} in {path}", "a Dockerfile in the build context")


def _loading(file: Path, document: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield what the SDK says while it loads the file. Missing files are reported by other rules."""
    from azure.ai.ml import load_environment

    if is_template(document.get("name")) or is_template(document.get("build")):
        return
    try:
        with quiet():
            load_environment(file).validate()
    except OSError:
        return
    # The SDK's errors have no common class; any of them means that it would not register this.
    except Exception as error:
        for key, _, message in complaints.said(error):
            if not message.endswith(" does not exist"):
                where = f"{at(file, *key.split('.'))}, key {key}" if key else str(file)
                yield REFUSED.problem(where, message)
