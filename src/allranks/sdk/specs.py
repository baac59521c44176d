"""Load a component's spec: component.yaml, or component.py with functions that have mldesigner's @command_component."""

import importlib.util
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from allranks.errors import InputError, Problem, raise_any
from allranks.sdk import bounded_yaml, internals, python_file, user_code, validation_errors, yaml_lines
from allranks.sdk.paths import shown
from allranks.sdk.session import entry
from allranks.sdk.validation_errors import refused, unknown_distribution, unknown_key
from allranks.sdk.yaml_lines import YamlText

SPECS = ("component.yaml", "component.py")
"""The file names of a component's spec: YAML, or a function with mldesigner's @command_component."""


def load(spec: Path) -> list[Any]:
    """Return azure-ai-ml's components of a spec, without network: one for a YAML file, at least one for a Python file.

    Raise InputError if the spec cannot be read or does not describe a component.
    """
    text = None if spec.suffix == ".py" else yaml_lines.parse(spec)
    raise_any(_mistakes(text) if text else ())
    try:
        defined = () if text else vars(_import_file(spec)).values()
        components = [value.component for value in defined if internals.is_mldesigner_component(value)]
        components = [internals.load_component(spec)] if text else components
        results = [internals.validate(component) for component in components]
    except InputError:
        raise
    # Any exception of the user's file or the SDK means that the component cannot be loaded; they have no common class.
    except Exception as error:
        messages = [("", validation_errors.one_line(error))]
        if validation_errors.is_own(error):
            messages = validation_errors.messages_of(error)
        raise InputError.of(_problem(text, spec, *message) for message in messages) from error
    if not components:
        expected = "a function under mldesigner's @command_component"
        raise InputError(Problem(str(spec), "no component", expected, "decorate the function"))
    complaints = (complaint for result in results for complaint in result.error_messages.items())
    raise_any(_problem(text, spec, key, _shortened(message)) for key, message in complaints)
    return components


def load_environment(file: Path) -> Any:
    """Return azure-ai-ml's environment of a file. Raise InputError if the file does not describe one."""
    try:
        return internals.load_environment(file)
    # The SDK's errors have no common class. Any of them means that it would not register the environment.
    except Exception as error:
        found = f"azure-ai-ml does not load it: {validation_errors.one_line(error)}"
        expected = "an environment: name, with image or build"
        raise InputError(Problem(shown(file), found, expected, "correct it")) from None


def environment_name(file: Path) -> str:
    """Return the name in an environment's file; "" if it has none, cannot be read, or is another kind of file."""
    try:
        tree = bounded_yaml.load_file(file)
    except (OSError, ValueError, yaml.YAMLError):
        return ""
    # The name of a job or a component with an inline environment is not the environment's.
    is_own = isinstance(tree, dict) and {"build", "image"} & tree.keys() and not {"command", "jobs"} & tree.keys()
    return str(tree.get("name") or "") if is_own else ""


def _problem(text: YamlText | None, spec: Path, key: str, message: str) -> Problem:
    where = text.place(key) if text else str(spec)
    where = f"{where}, key {key}" if key else where
    if message == "Unknown field." and text:
        kind = f"{validation_errors.type_of(text.tree, 'component')} component"
        return unknown_key(where, validation_errors.similar(kind, key, text.tree))
    value, unquoted = (text.value(key), text.unquoted.get(key)) if text else (None, None)
    problem = refused(where, key, value, message, unquoted)
    return replace(problem, fix=problem.fix or "correct the spec")


def _mistakes(text: YamlText) -> Iterator[Problem]:
    """Yield misspelt keys, some of which the SDK ignores, and an unknown distribution, for which the SDK reports no
    others."""
    kind = f"{validation_errors.type_of(text.tree, 'component')} component"
    for key, meant in validation_errors.misspelt(kind, text.tree):
        yield unknown_key(f"{text.place(key)}, key {key}", meant)
    if isinstance(distribution := text.value("distribution.type"), str):
        yield from unknown_distribution(distribution, f"{text.place('distribution.type')}, key distribution.type")


def _import_file(file: Path) -> ModuleType:
    """Import a file with its folder importable, and restore sys.path and sys.modules."""
    name = f"{file.parent.name}_{file.stem}"
    specification = importlib.util.spec_from_file_location(name, file)
    assert specification is not None
    module = importlib.util.module_from_spec(specification)
    with python_file.importable(file), entry(sys.modules, name, module):
        user_code.execute(file, module)
    return module


def _shortened(text: str) -> str:
    """Return a message in one line: the first one if the SDK reports one for each of several schemas."""
    text = text.removeprefix("['").removesuffix("']")  # a list of one message, for a file that is missing
    return " ".join(text.split("; ", 1)[0].split())
