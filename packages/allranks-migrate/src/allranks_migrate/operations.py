"""The values of a v1 script, and the functions, operators and methods that do not depend on this machine."""

from __future__ import annotations

import ast
import operator
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

_MOST_ITEMS = 20


class UnknownValueError(Exception):
    """The file does not determine the value of an expression."""


@dataclass(frozen=True)
class Unknown:
    """A value that the file does not determine. text: its expression"""

    text: str


@dataclass(frozen=True)
class Name:
    """A class, function or module that is imported: ``azureml.core.Environment``."""

    dotted: str


@dataclass(frozen=True, eq=False)
class Made:
    """An object of azureml: the result of a call of its class, or of a method.

    kind:       the class, with the method that made it: ``Environment.get``; a method of an object: ``as_mount``
    receiver:   the object whose method it is
    attributes: the attributes that the script sets later, by dotted name; filled during the evaluation
    calls:      the methods that the script calls later; filled during the evaluation
    """

    kind: str
    values: tuple[Any, ...]
    named: Mapping[str, Any]
    line: int
    receiver: Made | None = None
    attributes: dict[str, Any] = field(default_factory=dict)
    calls: list[Made] = field(default_factory=list)

    def get(self, name: str, position: int | None = None, default: Any = None) -> Any:
        """Return an argument by its name, or by its position; an attribute that was set later comes first."""
        for given in (self.attributes, self.named):
            if name in given:
                return given[name]
        return self.values[position] if position is not None and position < len(self.values) else default


def is_known(value: Any) -> bool:
    return not isinstance(value, (Unknown, Made, Name))


def _product(left: Any, right: Any) -> Any:
    """Return the product of two numbers. A text or a list could become too long for the memory."""
    if not all(isinstance(each, (int, float)) for each in (left, right)):
        raise TypeError
    return left * right


def _join(*parts: Any) -> str:
    """Return the text of an f-string. A list can have unknown items."""
    if not all(isinstance(each, (str, int, float, PurePath, type(None))) for each in parts):
        raise TypeError
    return "".join(map(str, parts))


_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: _product, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Eq: operator.eq, ast.NotEq: operator.ne,
    ast.USub: operator.neg, ast.Subscript: operator.getitem, ast.JoinedStr: _join,
    "str": str, "int": int, "float": float, "len": len, "list": lambda items=(): list(items[:_MOST_ITEMS]),
    "range": range, "dict": dict, "Path": Path, "pathlib.Path": Path, "pathlib.Path.cwd": Path,
    "os.path.join": os.path.join, "os.path.dirname": os.path.dirname, "os.path.basename": os.path.basename,
    "os.path.abspath": os.fspath, "os.path.realpath": os.fspath, "os.getcwd": lambda: ".",
}  # fmt: skip
"""Operators and functions that do not depend on this machine."""

_METHODS: dict[type, tuple[str, ...]] = {
    str: ("split", "strip", "lower", "upper", "join", "replace", "format", "rstrip", "lstrip"),
    PurePath: ("joinpath", "absolute", "as_posix", "resolve"),
    list: ("append", "extend"),
    dict: ("get", "keys", "values", "items", "update"),
}


def apply(function: str | type[ast.AST], *values: Any) -> Any:
    """Return the result of a function or an operator for known values. Raise UnknownValueError if it is unknown."""
    if function not in _FUNCTIONS or not all(map(is_known, values)):
        raise UnknownValueError
    return _result(_FUNCTIONS[function], values)


def method_result(owner: Any, method: str, values: tuple[Any, ...]) -> Any:
    """Return the result of a method. Raise UnknownValueError if it needs this machine or an unknown value."""
    is_listed = any(isinstance(owner, kind) and method in names for kind, names in _METHODS.items())
    if not is_listed or (method == "format" and not all(map(is_known, values))):
        raise UnknownValueError
    found = owner if method == "resolve" else _result(getattr(owner, method), values)
    return list(found) if method in ("keys", "values", "items") else found


def _result(function: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    try:
        return function(*values)
    except (TypeError, ValueError, LookupError, ArithmeticError):
        raise UnknownValueError from None
