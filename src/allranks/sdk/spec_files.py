"""Find the files that describe components, jobs and schedules, by their content."""

import ast
import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import yaml

from allranks.sdk import bounded_yaml, specs

_SCHEMA = re.compile(r"^\$schema:\s*[\"']?([^\s\"']+)", re.MULTILINE)
_KEYS = re.compile(r"^[\"']?(\$schema|type|command|create_job|jobs)[\"']?\s*:", re.MULTILINE)
_TYPES = (
    *("automl", "command", "data_transfer", "import", "parallel", "pipeline", "spark", "sweep"),
    "DistributedComponent",
)
"""The types that jobs and components share; assets, computes and endpoints have others."""
_STEP_KEYS = ("command", "component", "type")
_SKIPPED = ("__pycache__", "node_modules", "site-packages")
_CODE = re.compile(r"^code:[ \t]*[\"']?(?:\./)?(?P<folder>[^\s\"'/]+)/?[\"']?[ \t]*$", re.MULTILINE)
"""A component's code in a folder beside its spec."""
_NAME = re.compile(r"^name:\s*[\"']?(?P<name>[^\s\"'#]+)", re.MULTILINE)
_PYTHON_NAME = re.compile(r"\bname\s*=\s*[\"'](?P<name>\w+)[\"']|^def\s+(?P<function>\w+)", re.MULTILINE)


class Kind(Enum):
    """The kind of object that a file describes."""

    COMPONENT = "component"
    JOB = "job"
    SCHEDULE = "schedule"


@dataclass(frozen=True)
class SpecFiles:
    """The files in a folder, by the kind of object that they describe.

    components: files, in YAML or in Python
    jobs:       files in YAML
    pipelines:  functions in Python that can be called without inputs: ``FILE``, or ``FILE:NAME`` if a file has several
    schedules:  files in YAML
    """

    components: tuple[Path, ...] = ()
    jobs: tuple[Path, ...] = ()
    pipelines: tuple[str, ...] = ()
    schedules: tuple[Path, ...] = ()


def below(folder: Path) -> SpecFiles:
    """Return the specs in a folder and the folders below it.

    Hidden folders (``.git``, ``.venv``), virtual environments, caches, and the code beside a ``component.yaml`` are
    excluded: an exported component's code has a copy of its original spec. No file is run: a Python file has a pipeline
    if a function of its module is decorated with ``@pipeline`` or ``@dsl.pipeline``.
    """
    kinds = {path: kind(path) for path in files_below(folder, ".py", ".yaml", ".yml")}
    return SpecFiles(
        components=tuple(path for path, file_kind in kinds.items() if file_kind is Kind.COMPONENT),
        jobs=tuple(path for path, file_kind in kinds.items() if file_kind is Kind.JOB),
        pipelines=tuple(name for path, file_kind in kinds.items() if file_kind is None for name in _pipelines(path)),
        schedules=tuple(path for path, file_kind in kinds.items() if file_kind is Kind.SCHEDULE),
    )


def kind(path: Path) -> Kind | None:
    """Return the kind of object that a file describes; None for other kinds, and if the file cannot be read.

    No code is run. A component in Python is a file with functions that have mldesigner's @command_component, and
    without a pipeline.
    """
    try:
        text = bounded_yaml.read(path)
    except (OSError, ValueError):
        text = ""
    if path.suffix == ".py":
        statements = _statements(text) if "command_component" in text else None
        names = {name for node in statements or () for name in decorators(node)}
        detected = Kind.COMPONENT if "command_component" in names and "pipeline" not in names else None
    else:
        is_yaml = path.suffix.lower() in (".yaml", ".yml")
        detected = kind_of(_document(text)) if is_yaml and _KEYS.search(text) else None
    if detected or path.name not in specs.SPECS:
        return detected
    # For Python that can be parsed, the content decides.
    return None if path.suffix == ".py" and _statements(text) is not None else Kind.COMPONENT


def files_below(folder: Path, *suffixes: str, with_code: bool = False) -> Iterator[Path]:
    """Yield the files of a project with these suffixes, without hidden folders, virtual environments and caches.

    with_code: whether the code beside specs is included
    """
    for where, folders, names in os.walk(folder):
        skipped = set(_SKIPPED)
        for name in () if with_code else specs.SPECS:
            with contextlib.suppress(OSError, ValueError):
                skipped |= {found["folder"] for found in _CODE.finditer(bounded_yaml.read(Path(where, name)))}
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and name not in skipped and not Path(where, name, "pyvenv.cfg").exists()
        )
        yield from (Path(where, name) for name in sorted(names) if name.lower().endswith(suffixes))


def _document(text: str) -> Mapping[str, Any]:
    """Return a YAML file's content; only the schema that it names if it is not valid YAML."""
    try:
        document = bounded_yaml.load(text)
    except (yaml.YAMLError, ValueError):
        schema = _SCHEMA.search(text)
        return {"$schema": schema[1]} if schema else {}
    return document if isinstance(document, dict) else {}


def kind_of(document: Mapping[str, Any]) -> Kind | None:
    """Return the kind of object that the content of a YAML file describes; None for other kinds."""
    if {"trigger", "create_job"} <= document.keys():
        return Kind.SCHEDULE
    if document.get("type") == "parallel" and isinstance(document.get("task"), dict):
        return Kind.COMPONENT  # whatever its schema is: no job has this type
    schema = str(document.get("$schema", "")).rpartition("/")[2].lower()
    if "deployment" in schema:  # such as pipelineComponentBatchDeployment
        return None
    if schema:
        return Kind.COMPONENT if "component" in schema else Kind.JOB if "job." in schema else None
    jobs, command, declared = document.get("jobs"), document.get("command"), document.get("type")
    if declared is None:
        # Other YAML has jobs and commands too, for example GitHub workflows.
        steps = list(jobs.values()) if isinstance(jobs, dict) else []
        is_pipeline = bool(steps) and all(isinstance(step, dict) and step.keys() & set(_STEP_KEYS) for step in steps)
        if not is_pipeline and not (isinstance(command, str) and "environment" in document):
            return None
    elif declared not in _TYPES:
        return None
    # A job also has a type and a command, but no version and no is_deterministic, and its inputs have values.
    inputs = document.get("inputs") if declared == "command" else None
    ports = inputs.values() if isinstance(inputs, dict) else ()
    kinds = (str(port.get("type")) for port in ports if isinstance(port, dict))
    declares = not {"boolean", "integer", "number", "string"}.isdisjoint(kinds)
    return Kind.COMPONENT if declares or {"version", "is_deterministic"} & document.keys() else Kind.JOB


def _statements(text: str) -> list[ast.stmt] | None:
    """Return the statements of Python source; None if it cannot be parsed."""
    try:
        return ast.parse(text).body
    except (SyntaxError, ValueError):
        return None


def _pipelines(path: Path) -> list[str]:
    """Return the pipelines of a Python file. A function that needs inputs is part of a larger pipeline."""
    try:
        text = bounded_yaml.read(path) if path.suffix == ".py" else ""
    except (OSError, ValueError):
        return []
    module = _statements(text) if "pipeline" in text else None
    functions = (node for node in module or () if isinstance(node, ast.FunctionDef) and "pipeline" in decorators(node))
    names = [function.name for function in functions if _needs_no_inputs(function.args)]
    return [f"{path}:{name}" for name in names] if len(names) > 1 else [str(path)] * len(names)


def _needs_no_inputs(arguments: ast.arguments) -> bool:
    positional = len(arguments.posonlyargs) + len(arguments.args)
    return positional == len(arguments.defaults) and None not in arguments.kw_defaults


def decorators(node: ast.stmt) -> dict[str, ast.expr]:
    """Return the decorators of a function by name, without that of their module."""
    found = {}
    for decorator in getattr(node, "decorator_list", ()):
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        found[called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")] = decorator
    return found


def find_by_name(folder: Path, name: str) -> dict[Path, str]:
    """Return the specs with this name and their versions, the highest version first, then by path."""
    components = sorted(path for path in _candidates(folder, name) if kind(path) is Kind.COMPONENT)
    versions = {path: _version(path, name) for path in components}
    return dict(sorted(versions.items(), key=lambda spec: _order(spec[1]), reverse=True))


def _candidates(folder: Path, name: str) -> Iterator[Path]:
    """Yield files that may describe a component. The text is searched, because parsing a thousand files takes a
    minute."""
    for path in files_below(folder, ".yaml", ".yml", *specs.SPECS, with_code=True):
        try:
            text = bounded_yaml.read(path)
        except (OSError, UnicodeDecodeError):
            continue
        pattern = _PYTHON_NAME if path.suffix == ".py" else _NAME
        if any(name in match.groups() for match in pattern.finditer(text)):
            yield path


def _version(path: Path, name: str) -> str:
    if path.suffix == ".py":
        return next((str(spec.version or "") for spec in specs.load(path) if spec.name == name), "")
    return str(bounded_yaml.load_file(path).get("version", ""))


def _order(version: str) -> tuple[tuple[int, int, str], ...]:
    """Return the sort key of a version: 1.10 comes after 1.9."""
    parts = re.findall(r"\d+|[^\d.]+", version)
    return tuple((1, int(part), "") if part.isdecimal() else (0, 0, part) for part in parts)
