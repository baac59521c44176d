"""A component's spec, loaded: component.yaml, or component.py with functions under mldesigner's @command_component."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import logging
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from allranks.errors import InputError, Problem
from allranks.sdk.yaml_lines import at

SPECS = ("component.yaml", "component.py")
"""What a component's spec is called: written by hand, or a function under mldesigner's @command_component."""


def load(spec: Path) -> list[Any]:
    """azure-ai-ml's components of a spec: one of a YAML file, at least one of a Python file. Touches no network.

    Raise InputError if the spec cannot be read or does not describe a component.
    """
    try:
        components = _load_python(spec) if spec.suffix == ".py" else [_load_yaml(spec)]
        results = [component._validate() for component in components]
    except InputError:
        raise
    # Whatever a user's file or the SDK raises means that this component cannot be loaded; there is no common class.
    except Exception as error:
        raise InputError.of(_problem(spec, key, said) for key, said in _complaints(error)) from error
    if not components:
        raise InputError(
            Problem(
                where=str(spec),
                found="no component",
                expected="a function under mldesigner's @command_component",
                fix="decorate the function",
            )
        )
    complaints = [_problem(spec, key, said) for result in results for key, said in result.error_messages.items()]
    if complaints:
        raise InputError.of(complaints)
    return components


def _problem(spec: Path, key: str, said: str) -> Problem:
    where = str(spec)
    if key:
        place = where if spec.suffix == ".py" else at(spec, *key.split("."))
        where = f"{place}, key {key}"
    return Problem(where=where, found=_shortened(said), fix="correct the spec")


def _load_yaml(spec: Path) -> Any:
    from azure.ai.ml import load_component

    # Read here first: the SDK would not say where in the file the mistake is.
    try:
        yaml.safe_load(spec.read_text(encoding="utf-8"))
    except yaml.MarkedYAMLError as error:
        where = f"{spec}:{error.problem_mark.line + 1}" if error.problem_mark else str(spec)
        raise InputError(Problem(where, f"not YAML: {error.problem}", fix="correct the line")) from error
    return load_component(spec)


def _load_python(spec: Path) -> list[Any]:
    module = _import_alone(spec)
    return [value.component for value in vars(module).values() if getattr(value, "_is_mldesigner_component", False)]


def _import_alone(file: Path) -> ModuleType:
    """Import a file with its folder importable, leaving sys.path and sys.modules as they were."""
    name = f"{file.parent.name}_{file.stem}"
    specification = importlib.util.spec_from_file_location(name, file)
    if specification is None or specification.loader is None:
        raise ImportError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(specification)
    before, path = set(sys.modules), list(sys.path)
    sys.modules[name] = module
    sys.path.insert(0, str(file.parent))
    try:
        specification.loader.exec_module(module)
    finally:
        sys.path[:] = path
        # A neighbour's helper may have the same name: those that were imported from this folder are forgotten.
        for imported in set(sys.modules) - before:
            if _is_below(getattr(sys.modules[imported], "__file__", None), file.parent):
                del sys.modules[imported]
    return module


def _is_below(file: str | None, folder: Path) -> bool:
    return file is not None and Path(file).resolve().is_relative_to(folder.resolve())


def _complaints(error: Exception) -> list[tuple[str, str]]:
    """Return what an exception says: keys and messages of the JSON that the SDK's have in their text, else its first
    line."""
    text = str(error)
    with contextlib.suppress(ValueError):
        found, _ = json.JSONDecoder().raw_decode(text[text.index("{") :])
        if isinstance(found, dict) and found.get("errors"):
            return [(item.get("path", "").strip("*"), str(item.get("message", ""))) for item in found["errors"]]
    first = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return [("", f"{type(error).__name__}: {first}" if first else type(error).__name__)]


def _shortened(text: str) -> str:
    """Return a message in one line. Where a value fits none of several schemas the SDK says so of each; the first will
    do."""
    return " ".join(text.split("; ", 1)[0].split())


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep what the SDK warns and logs of off the terminal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = logging.root.manager.disable
        logging.disable(logging.WARNING)
        try:
            yield
        finally:
            logging.disable(before)
