"""Read the components of a Python file, functions with mldesigner's @command_component, as subjects of the rules."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from allranks.checks.component.subject import PortSpec, Subject, Use
from allranks.components.find import describe

DECORATOR = "command_component"


def read(path: Path, components: list[Any]) -> list[Subject]:
    """Return the file's components as subjects. components: those that the SDK loaded from the file"""
    functions = list(decorated(ast.parse(path.read_text(encoding="utf-8"))))
    by_name = {_name(function): function for function in functions}
    return [_subject(path, component, by_name.get(component.name)) for component in components]


def decorated(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    """Yield the functions of a module that are components."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and _decoration(node) is not None:
            yield node


def _decoration(function: ast.FunctionDef) -> ast.expr | None:
    for decorator in function.decorator_list:
        called = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name == DECORATOR:
            return decorator
    return None


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
        inputs=tuple(
            PortSpec(
                port.name, port.type, port.description, port.optional, port.default, port.minimum, port.maximum,
                port.enum or None,
            )
            for port in info.inputs
        ),
        outputs=tuple(PortSpec(port.name, port.type, port.description) for port in info.outputs),
        environment=component.environment,
        place=_places(path, function, keywords),
        uses=tuple(_uses(path, component, function)),
        entries=(path,),
        folders=(path.parent,),
    )  # fmt: skip


def _places(path: Path, function: ast.FunctionDef | None, keywords: dict[str, ast.keyword]) -> Callable[..., str]:
    arguments = {argument.arg: argument for argument in _arguments(function)}
    defaults = _defaults(function)

    def place(*keys: str) -> str:
        line = function.lineno if function else 1
        if keys and keys[0] in ("inputs", "outputs"):
            name = keys[1].partition(".")[0] if len(keys) > 1 else ""
            if name in arguments:
                line = arguments[name].lineno
            if keys[2:] == ("default",) and name in defaults:
                line = defaults[name].lineno
        elif keys and keys[0] in keywords:
            line = keywords[keys[0]].value.lineno
        return f"{path}:{line}"

    return place


def _arguments(function: ast.FunctionDef | None) -> list[ast.arg]:
    return [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs] if function else []


def _defaults(function: ast.FunctionDef | None) -> dict[str, ast.expr]:
    if function is None:
        return {}
    positional = [*function.args.posonlyargs, *function.args.args]
    last = positional[len(positional) - len(function.args.defaults) :]
    defaults = {argument.arg: value for argument, value in zip(last, function.args.defaults, strict=True)}
    named = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return defaults | {argument.arg: value for argument, value in named if value is not None}


def _uses(path: Path, component: Any, function: ast.FunctionDef | None) -> Iterator[Use]:
    """Yield the ports that the function's body uses. A body that uses locals() or vars() uses all of them."""
    if function is None:
        return
    read = {
        node.id: node.lineno
        for statement in function.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name)
    }
    everything = "locals" in read or "vars" in read
    for kind, names in (("inputs", component.inputs), ("outputs", component.outputs)):
        for name in names:
            # The code uses a group of parameters by the group's name.
            argument = name.partition(".")[0]
            if everything or argument in read:
                yield Use(kind, name, f"{path}:{read.get(argument, function.lineno)}", optional=True)
