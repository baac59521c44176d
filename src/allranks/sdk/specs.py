"""Load a component's spec: component.yaml, or component.py with functions that have mldesigner's @command_component."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from allranks.errors import InputError, Problem
from allranks.sdk import bounded_yaml, internals, user_code, validation_errors
from allranks.sdk.distributed_component import is_distributed_component
from allranks.sdk.messages import refused, unknown_distribution, unknown_key
from allranks.sdk.paths import shown
from allranks.sdk.yaml_lines import at

SPECS = ("component.yaml", "component.py")
"""The file names of a component's spec: YAML, or a function with mldesigner's @command_component."""


def load(spec: Path) -> list[Any]:
    """Return azure-ai-ml's components of a spec: one for a YAML file, at least one for a Python file, without network.

    Raise InputError if the spec cannot be read or does not describe a component.
    """
    try:
        components = _load_python(spec) if spec.suffix == ".py" else [_load_yaml(spec)]
        results = [internals.validate(component) for component in components]
    except InputError:
        raise
    # Any exception of the user's file or the SDK means that the component cannot be loaded; they have no common class.
    except Exception as error:
        messages = [("", None, validation_errors.one_line(error))]
        if validation_errors.is_own(error):
            messages = validation_errors.messages_of(error)
        raise InputError.of(_problem(spec, *message) for message in messages) from error
    if not components:
        expected = "a function under mldesigner's @command_component"
        raise InputError(Problem(str(spec), "no component", expected, "decorate the function"))
    complaints = (complaint for result in results for complaint in result.error_messages.items())
    if problems := [_problem(spec, key, None, message) for key, message in complaints]:
        raise InputError.of(problems)
    return components


def load_environment(file: Path) -> Any:
    """Return azure-ai-ml's environment of a file. Raise InputError if the file does not describe one."""
    from azure.ai.ml import load_environment

    try:
        return load_environment(file)
    # The SDK's errors have no common class; any of them means that it would not register this.
    except Exception as error:
        found = f"azure-ai-ml does not load it: {validation_errors.one_line(error)}"
        raise InputError(
            Problem(shown(file), found, "an environment: name, with image or build", "correct it")
        ) from None


def environment_name(file: Path) -> str:
    """Return the name in an environment's own file; "" if it has none, cannot be read, or is another kind of file."""
    try:
        tree = bounded_yaml.load_file(file)
    except (OSError, ValueError, yaml.YAMLError):
        return ""
    # The name of a job or a component with an inline environment is not the environment's.
    is_own = isinstance(tree, dict) and {"build", "image"} & tree.keys() and not {"command", "jobs"} & tree.keys()
    return str(tree.get("name") or "") if is_own else ""


def _problem(spec: Path, key: str, value: Any, message: str) -> Problem:
    where = str(spec)
    if key:
        place = where if spec.suffix == ".py" else at(spec, *key.split("."))
        where = f"{place}, key {key}"
    if message == "Unknown field." and spec.suffix != ".py":
        return unknown_key(
            where, validation_errors.similar(validation_errors.kind_of(bounded_yaml.load_file(spec)), key)
        )
    problem = refused(where, key, value, _shortened(message) if value is None else message)
    return replace(problem, fix=problem.fix or "correct the spec")


def _load_yaml(spec: Path) -> Any:
    from azure.ai.ml import load_component

    # Parse here first: the SDK does not report the line of a mistake.
    tree = bounded_yaml.read_values(spec)
    if problems := list(_mistakes(spec, tree)):
        raise InputError.of(problems)
    return load_component(spec)


def _mistakes(spec: Path, tree: Any) -> Iterator[Problem]:
    """Yield mistakes that the SDK ignores, or of which its message names only some of the allowed values."""
    if not isinstance(tree, dict) or is_distributed_component(tree):
        return
    for key, meant in validation_errors.misspelt(validation_errors.kind_of(tree), tree):
        yield unknown_key(f"{at(spec, *key.split('.'))}, key {key}", meant)
    settings = tree.get("distribution")
    if isinstance(settings, dict) and isinstance(kind := settings.get("type"), str):
        yield from unknown_distribution(kind, f"{at(spec, 'distribution', 'type')}, key distribution.type")


def _load_python(spec: Path) -> list[Any]:
    module = _import_file(spec)
    return [value.component for value in vars(module).values() if internals.is_mldesigner_component(value)]


def _import_file(file: Path) -> ModuleType:
    """Import a file with its folder importable, and restore sys.path and sys.modules."""
    name = f"{file.parent.name}_{file.stem}"
    specification = importlib.util.spec_from_file_location(name, file)
    if specification is None:
        raise ImportError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(specification)
    before, path = set(sys.modules), list(sys.path)
    sys.modules[name] = module
    sys.path.insert(0, str(file.parent))
    try:
        user_code.execute(file, module)
    finally:
        sys.path[:] = path
        # Modules of another component may have the same names, so remove those that were imported from this folder.
        for imported in set(sys.modules) - before:
            source = getattr(sys.modules[imported], "__file__", None)
            if source is not None and Path(source).resolve().is_relative_to(file.parent.resolve()):
                del sys.modules[imported]
    return module


def _shortened(text: str) -> str:
    """Return a message in one line. If a value matches none of several schemas, the SDK reports each; use the first."""
    text = text.removeprefix("['").removesuffix("']")  # a list of one message, for a file that is missing
    return " ".join(text.split("; ", 1)[0].split())
