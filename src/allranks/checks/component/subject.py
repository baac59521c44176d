"""A component's spec as written, before the SDK adds defaults, with the line of each key.

It is read from YAML, or from a Python file with functions that have mldesigner's @command_component.
"""

import ast
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allranks.catalog.declared_ports import Port, port_specs
from allranks.catalog.find import describe
from allranks.contract.templating import used_names
from allranks.errors import Problem, finding
from allranks.sdk import yaml_lines
from allranks.sdk.spec_files import decorators
from allranks.sdk.yaml_lines import at


@dataclass(frozen=True)
class Use:
    """A use of a port. optional: whether it is inside ``$[[ ... ]]``, or cannot be"""

    kind: str
    name: str
    where: str
    optional: bool = False


@dataclass(frozen=True)
class Subject:
    """A component as the rules check it.

    version:       as written: an unquoted 1.10 is a number
    deterministic: None if the spec does not set it
    environment:   a reference, the mapping of an inline environment, the path of an environment's file, or None
    distribution:  as written, like resources; empty if not set
    variables:     names of its environment variables
    uses:          uses of ports in a YAML file
    entries:       Python files that the command starts
    local_paths:   its code and additional includes as written, with their keys
    needs_command: whether its type has a command, and it is not a function
    needs_environment: whether its type runs in an environment: command and parallel components
    place:         returns the file and line of a key: place("inputs", "lr", "default")
    unquoted:      raw text of values that YAML does not read as text, by key such as inputs.lr.default
    warnings:      about its YAML file: repeated keys, and values that YAML changes
    """

    path: Path
    name: str
    version: Any
    display_name: str
    description: str
    tags: Mapping[str, Any]
    deterministic: bool | None
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    environment: Any
    place: Callable[..., str]
    command: str = ""
    distribution: Mapping[str, Any] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    variables: tuple[str, ...] = ()
    uses: tuple[Use, ...] = ()
    entries: tuple[Path, ...] = ()
    type: str = "command"
    local_paths: tuple[tuple[tuple[str, ...], str], ...] = ()
    needs_command: bool = False
    needs_environment: bool = True
    unquoted: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()

    @property
    def is_pipeline(self) -> bool:
        return self.type == "pipeline"

    def report(self, code: str, keys: tuple[str, ...], found: str, expected: str, fix: str = "") -> Problem:
        """Return a finding of a rule at a key. fix: by default the rule's"""
        return finding(code, self.place(*keys), found, expected, fix)

    def in_quotes(self, value: Any, *keys: str) -> str:
        """Return the fix for a value that is not a text, with its raw text."""
        return f'put it in quotes: "{self.written(value, *keys)}"'

    def written(self, value: Any, *keys: str) -> str:
        """Return the raw text of a value without quotes."""
        return self.unquoted.get(".".join(keys), str(value))

    def ports(self) -> tuple[tuple[str, Port], ...]:
        """Return every port with its section, inputs or outputs."""
        return (*(("inputs", port) for port in self.inputs), *(("outputs", port) for port in self.outputs))


_NOT_COMMANDS = ("distribution", "environment_variables", "limits", "resources")
"""Keys whose values are settings, which have no optional parts."""
_NOT_USES = ("inputs", "outputs", "description", "tags", "display_name")


def read_yaml(path: Path) -> Subject:
    """Return the component of a YAML file. Raise InputError if the file is not a mapping in YAML."""
    text = yaml_lines.parse(path)
    document = text.tree
    # A parallel component declares its code, environment and program below this key.
    inner = _mapping(document.get("task"))
    settings = {**inner, **document}
    command = str(settings.get("command") or "")
    type_ = "pipeline" if "jobs" in document else str(document.get("type") or "command")
    code = settings.get("code")
    code = code if isinstance(code, str) and ":" not in code else ""
    listed = settings.get("additional_includes")
    keyed = enumerate(listed if isinstance(listed, list) else ())
    included = {str(number): include for number, include in keyed if isinstance(include, str)}
    paths = [(("additional_includes", number), include) for number, include in included.items()]
    deterministic = document.get("is_deterministic")
    return Subject(
        path=path,
        name=str(document.get("name") or ""),
        version=document.get("version"),
        display_name=str(document.get("display_name") or ""),
        description=" ".join(str(document.get("description") or "").split()),
        tags=_mapping(document.get("tags")),
        deterministic=deterministic if isinstance(deterministic, bool) else None,
        inputs=tuple(port_specs(document.get("inputs"))),
        outputs=tuple(port_specs(document.get("outputs"))),
        environment=_inline_environment(settings.get("environment"), path.parent),
        place=lambda *keys: at(path, *(("task", *keys) if {*keys[:1]} <= {*inner} - {*document} else keys)),
        command=command,
        type=type_,
        local_paths=((("code",), code), *paths),
        needs_command=type_ == "command",
        needs_environment=type_ in ("command", "parallel"),
        distribution=_mapping(document.get("distribution")),
        resources=_mapping(document.get("resources")),
        variables=tuple(map(str, _mapping(settings.get("environment_variables")))),
        uses=tuple(_uses_in_yaml(document, path)),
        entries=tuple(_entries(command, path.parent / code, [path.parent / each for each in included.values()])),
        unquoted=text.unquoted,
        warnings=text.warnings,
    )


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _inline_environment(value: Any, base: Path) -> Any:
    if isinstance(value, str) and not value.startswith("azureml:") and "://" not in value:
        return base / value.removeprefix("file:")
    if isinstance(value, dict):
        build = value.get("build")
        if isinstance(build, dict) and isinstance(build.get("path"), str) and "://" not in build["path"]:
            return {**value, "build": {**build, "path": str(base / build["path"])}}
    return value


def _uses_in_yaml(document: dict[str, Any], path: Path) -> Iterator[Use]:
    """Yield the uses of ports. Any value may contain references: the command, variables, the layout, limits."""
    lines = path.read_text(encoding="utf-8").splitlines()
    for key, value in document.items():
        if key in _NOT_USES:
            continue
        for text in _texts(value):
            for used in used_names(text):
                kind, name = used.kind, used.name
                if kind == "parent":
                    kind, _, name = name.partition(".")
                if kind in ("inputs", "outputs") and not name.startswith("jobs."):
                    is_optional = used.optional or key in _NOT_COMMANDS
                    yield Use(kind, name, f"{path}:{_line_of_use(lines, used.kind, used.name)}", is_optional)


def _line_of_use(lines: list[str], kind: str, name: str) -> int:
    pattern = re.compile(r"\$\{\{\s*" + re.escape(f"{kind}.{name}") + r"\s*}}")
    return next((number for number, line in enumerate(lines, 1) if pattern.search(line)), 1)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _entries(command: str, folder: Path, includes: list[Path]) -> Iterator[Path]:
    """Yield the project's Python files that the command names: by path, as a module, or as mldesigner's source."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    for before, word in zip(["", *words], words, strict=False):
        candidates = [Path(word)] if word.endswith(".py") else []
        if before == "-m":
            name = Path(*word.split("."))
            candidates = [name.with_suffix(".py"), name / "__main__.py"]
        for candidate in candidates:
            bases = (folder, *(include.parent for include in includes))
            yield from (base / candidate for base in bases if os.path.isfile(base / candidate))


def read_python(path: Path, components: list[Any]) -> list[Subject]:
    """Return the components of a Python file. components: as loaded by the SDK"""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    by_name = {_name(node): node for node in nodes if isinstance(node, ast.FunctionDef) and _decoration(node)}
    return [_subject(path, component, by_name.get(component.name)) for component in components]


def _decoration(function: ast.FunctionDef) -> ast.expr | None:
    """Return the decorator that makes a function a component; None for any other function."""
    return decorators(function).get("command_component")


def _keywords(function: ast.FunctionDef | None) -> dict[str, ast.keyword]:
    decoration = _decoration(function) if function else None
    return {keyword.arg: keyword for keyword in getattr(decoration, "keywords", ()) if keyword.arg}


def _name(function: ast.FunctionDef) -> str:
    keyword = _keywords(function).get("name")
    if keyword and isinstance(keyword.value, ast.Constant):
        return str(keyword.value.value)
    return function.name


def _subject(path: Path, component: Any, function: ast.FunctionDef | None) -> Subject:
    info = describe(component, path)
    keywords = _keywords(function)
    tags = {name: value for name, value in (component.tags or {}).items() if name != "codegenBy"}
    return Subject(
        path=path,
        name=info.name,
        version=info.version or None,
        display_name=str(component.display_name or ""),
        description=info.description,
        tags=tags,
        deterministic=bool(component.is_deterministic) if "is_deterministic" in keywords or not function else None,
        inputs=info.inputs,
        outputs=info.outputs,
        environment=component.environment,
        place=lambda *keys: f"{path}:{_line(function, keywords, keys)}",
        entries=(path,),
    )


def _line(function: ast.FunctionDef | None, keywords: dict[str, ast.keyword], keys: tuple[str, ...]) -> int:
    """Return the line of a key of the decorator; the line of the function for any other key."""
    keyword = keywords.get(keys[0]) if keys else None
    return keyword.value.lineno if keyword else function.lineno if function else 1
