"""Evaluate a v1 script without running it: find the objects of azureml that it makes, with the known values.

Functions are entered where they are called, otherwise with the defaults of their parameters. Of a branch whose
condition is unknown, both sides are evaluated; of a loop over unknown items, the body once.
"""

import ast
import contextlib
import io
import re
import tokenize
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from allranks.errors import InputError, Problem
from allranks.sdk import notebook
from allranks.sdk.paths import shown
from allranks_migrate import constructs
from allranks_migrate.operations import Made, Name, Unknown, UnknownValueError, apply, is_known, method_result

_DEEPEST = 8
_MOST_ITEMS = 20


@dataclass(frozen=True)
class Script:
    """A v1 script.

    made:      the objects of azureml, in order
    variables: the name of the variable that an object is assigned to, by the object's id
    comments:  the comments with their lines, in order
    start:     the line of the first statement
    place:     returns the location of a line, for messages
    """

    path: Path
    made: tuple[Made, ...]
    variables: Mapping[int, str]
    comments: tuple[tuple[int, str], ...]
    start: int
    place: Callable[[int], str]


def read(path: Path) -> Script:
    """Evaluate a Python file or a notebook. Raise InputError if it is neither."""
    text, place = _source(path)
    evaluation = _Evaluation(path)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as of an invalid escape
            module = ast.parse(text)
        with contextlib.suppress(_Returned):  # of a cell
            evaluation.block(module.body, evaluation.globals)
        for function in evaluation.functions:
            if id(function.node) not in evaluation.called:
                evaluation.call(function, (), {})
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None) or 1
        raise InputError(Problem(place(line), "it is not Python that can be parsed", "a script of SDK v1")) from None
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = tuple((token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT)
    start = module.body[0].lineno if module.body else 1
    return Script(path, tuple(evaluation.made), evaluation.variables, comments, start, place)


def _source(path: Path) -> tuple[str, Callable[[int], str]]:
    """Return the Python code of a file, and a function that returns the location of a line for messages."""
    if path.suffix != ".ipynb":
        try:
            return path.read_text(encoding="utf-8-sig"), lambda line: f"{shown(path)}:{line}"
        except UnicodeDecodeError:
            raise InputError(Problem(shown(path), "it is not UTF-8", "a Python file of SDK v1")) from None
    lines, places = list[str](), list[str]()
    for cell, source in notebook.cells(path).items():
        is_python = not source.startswith("%%")
        for number, line in enumerate(source.splitlines(), 1):
            code = line.strip()
            is_code = is_python and not code.startswith(("!", "%", "?")) and not code.endswith("?")
            lines.append(line if is_code else f"{line[: len(line) - len(line.lstrip())]}pass" if is_python else "")
            places.append(f"{shown(path)}, cell {cell}, line {number}")
    return "\n".join(lines) + "\n", lambda line: places[min(line, len(places)) - 1] if places else shown(path)


@dataclass(frozen=True, eq=False)
class _Function:
    node: ast.FunctionDef | ast.AsyncFunctionDef
    scope: Mapping[str, Any]


class _Returned(Exception):
    """Ends the evaluation of a function."""


class _Evaluation:
    """The evaluation of one file."""

    def __init__(self, path: Path) -> None:
        self.made: list[Made] = []
        self.variables: dict[int, str] = {}
        self.functions: list[_Function] = []
        self.called: set[int] = set()
        self.depth = 0
        self.globals: dict[str, Any] = {"__file__": path.absolute(), "__name__": "__main__"}

    def block(self, statements: Iterable[ast.stmt], scope: dict[str, Any]) -> None:
        for statement in statements:
            self.statement(statement, scope)

    def statement(self, node: ast.stmt, scope: dict[str, Any]) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                scope[node.name] = _Function(node, scope)
                self.functions.append(scope[node.name])
            case ast.ClassDef():
                scope[node.name] = fields = dict[str, Any]()
                self.block((each for each in node.body if isinstance(each, (ast.Assign, ast.AnnAssign))), fields)
            case ast.If():
                test = self.value(node.test, scope)
                if not test or not is_known(test):
                    self.block(node.orelse, scope)
                if test or not is_known(test):
                    self.block(node.body, scope)
            case ast.For():
                items = self.value(node.iter, scope)
                is_listed = isinstance(items, (list, tuple, dict, range))
                for item in list(items)[:_MOST_ITEMS] if is_listed else [Unknown("item")]:
                    self.assign(node.target, item, scope)
                    self.block(node.body, scope)
            case ast.Try():
                self.block([each for handler in node.handlers for each in handler.body], scope)
                self.block(node.body, scope)
            case ast.With():
                for each in node.items:
                    opened = self.value(each.context_expr, scope)
                    if each.optional_vars is not None:
                        self.assign(each.optional_vars, opened, scope)
                self.block(node.body, scope)
            case ast.While():
                self.block(node.body, scope)
            case ast.Assign():
                value = self.value(node.value, scope)
                for target in node.targets:
                    self.assign(target, value, scope)
            case ast.AnnAssign():
                value = Unknown(ast.unparse(node.target)) if node.value is None else self.value(node.value, scope)
                self.assign(node.target, value, scope)
            case ast.AugAssign():
                self.assign(node.target, self.value(ast.BinOp(node.target, node.op, node.value), scope), scope)
            case ast.Expr():
                self.value(node.value, scope)
            case ast.Return():
                raise _Returned(None if node.value is None else self.value(node.value, scope))
            case ast.Import():
                for alias in node.names:
                    name = alias.asname or alias.name.partition(".")[0]
                    scope[name] = Name(alias.name if alias.asname else name)
            case ast.ImportFrom(module=str(module)):
                for alias in node.names:
                    scope[alias.asname or alias.name] = Name(f"{module}.{alias.name}")

    def assign(self, target: ast.expr, value: Any, scope: dict[str, Any]) -> None:
        match target:
            case ast.Name():
                scope[target.id] = value
                if isinstance(value, Made):
                    self.variables.setdefault(id(value), target.id)
            case ast.Tuple() | ast.List():
                parts = value if isinstance(value, (list, tuple)) else [Unknown(ast.unparse(target))] * len(target.elts)
                for element, part in zip(target.elts, parts, strict=False):
                    self.assign(element, part, scope)
            case ast.Attribute():
                owner, path = self.owner(target, scope)
                attributes = owner.attributes if isinstance(owner, Made) else owner
                if isinstance(attributes, dict):
                    attributes[path] = value
            case ast.Subscript():
                owner, key = self.value(target.value, scope), self.value(target.slice, scope)
                if isinstance(owner, dict) and isinstance(key, (str, int)):
                    owner[key] = value

    def owner(self, node: ast.Attribute, scope: Mapping[str, Any]) -> tuple[Any, str]:
        """Return the object that a dotted name belongs to, and the rest of the name: (environment, docker.enabled)."""
        names, inner = [node.attr], node.value
        while isinstance(inner, ast.Attribute):
            names.insert(0, inner.attr)
            inner = inner.value
        owner = self.value(inner, scope)
        if not isinstance(owner, (Made, Name)):
            return (self.value(node.value, scope) if len(names) > 1 else owner), node.attr
        while isinstance(owner, Made):
            known = [size for size in range(1, len(names)) if ".".join(names[:size]) in owner.attributes]
            if not known:
                break
            owner, names = owner.attributes[".".join(names[: known[-1]])], names[known[-1] :]
        return owner, ".".join(names)

    def value(self, node: ast.expr, scope: Mapping[str, Any]) -> Any:
        """Return the value of an expression; Unknown if the file does not determine it."""
        try:
            return self._value(node, scope)
        except UnknownValueError:
            return Unknown(ast.unparse(node))

    def _value(self, node: ast.expr, scope: Mapping[str, Any]) -> Any:
        match node:
            case ast.Constant():
                return None if node.value is Ellipsis else node.value  # a sample's "fill this in"
            case ast.Name():
                for names in (scope, self.globals):
                    if node.id in names:
                        return names[node.id]
                if node.id in constructs.CLASSES:
                    return Name(f"azureml.core.{node.id}")
            case ast.List() | ast.Tuple():
                items: list[Any] = []
                for element in node.elts:
                    item = self.value(element.value if isinstance(element, ast.Starred) else element, scope)
                    items += item if isinstance(element, ast.Starred) and isinstance(item, list) else [item]
                return items if isinstance(node, ast.List) else tuple(items)
            case ast.Dict():
                nodes = zip(node.keys, node.values, strict=True)
                pairs = [(self.value(key, scope), self.value(each, scope)) for key, each in nodes if key is not None]
                return {key: value for key, value in pairs if isinstance(key, (str, int, Unknown))}
            case ast.JoinedStr():
                return apply(ast.JoinedStr, *(self.value(part, scope) for part in node.values))
            case ast.FormattedValue():
                return self.value(node.value, scope)
            case ast.UnaryOp():
                return apply(type(node.op), self.value(node.operand, scope))
            case ast.BinOp(left=left, op=op, right=right) | ast.Compare(left=left, ops=[op], comparators=[right]):
                return apply(type(op), self.value(left, scope), self.value(right, scope))
            case ast.IfExp():
                return self.value(node.body if self.value(node.test, scope) else node.orelse, scope)
            case ast.Subscript():
                owner, key = self.value(node.value, scope), self.value(node.slice, scope)
                is_made = isinstance(owner, Made)
                return self.new("[]", (key,), {}, node, owner) if is_made else apply(ast.Subscript, owner, key)
            case ast.Attribute():
                match self.owner(node, scope):
                    case (Name() as owner, path):
                        return Name(f"{owner.dotted}.{path}")
                    case (Made(attributes=names), path) | (dict() as names, path) if path in names:
                        return names[path]
                    case (Made() as owner, path):
                        return self.new(path, (), {}, node, owner)
                    case (PurePath() as owner, "parent" | "name" | "stem" as path):
                        return getattr(owner, path)
            case ast.Call():
                return self.calling(node, scope)
        raise UnknownValueError

    def calling(self, node: ast.Call, scope: Mapping[str, Any]) -> Any:
        values = tuple(self.value(each, scope) for each in node.args if not isinstance(each, ast.Starred))
        named: dict[str, Any] = {}
        for keyword in node.keywords:
            value = self.value(keyword.value, scope)
            named |= {keyword.arg: value} if keyword.arg else value if isinstance(value, dict) else {}
        if isinstance(node.func, ast.Attribute):
            owner, method = self.owner(node.func, scope)
            if isinstance(owner, Made):
                return self.new(method, values, named, node, owner)
            if not isinstance(owner, (Name, Unknown)):
                return method_result(owner, method, values)
            function: Any = Name(f"{owner.dotted}.{method}") if isinstance(owner, Name) else None
        else:
            function = self.value(node.func, scope)
        match function:
            case _Function():
                return self.call(function, values, named)
            case dict():  # a class of the script, such as a dataclass
                return {**function, **dict(zip(function, values, strict=False)), **named}
            case Name() if function.dotted.startswith("azureml"):
                # Of a class with a method ``Environment.get``, of a function its name: ``choice``.
                (kind,) = re.findall(r"(?:^|\.)([A-Z].*|[^.]+$)", function.dotted)
                return self.new(kind, values, named, node)
        return apply(function.dotted if isinstance(function, Name) else ast.unparse(node.func), *values)

    def new(
        self, kind: str, values: tuple[Any, ...], named: Mapping[str, Any], node: ast.expr, receiver: Made | None = None
    ) -> Made:
        if receiver is None and kind in constructs.POSITIONS:
            values, named = (), {**dict(zip(constructs.POSITIONS[kind].split(), values, strict=False)), **named}
        made = Made(kind, values, named, node.lineno, receiver)
        self.made.append(made)
        if receiver is not None:
            receiver.calls.append(made)
        return made

    def call(self, function: _Function, values: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """Return the result of a function of the script."""
        self.called.add(id(function.node))
        if self.depth >= _DEEPEST:
            raise UnknownValueError
        given = function.node.args
        names = [each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
        optional = [*given.defaults, *given.kw_defaults]
        defaults = [*[None] * (len(names) - len(optional)), *optional]
        scope = dict(function.scope)
        for index, (name, default) in enumerate(zip(names, defaults, strict=True)):
            otherwise = Unknown(name) if default is None else self.value(default, function.scope)
            scope[name] = values[index] if index < len(values) else named.get(name, otherwise)
        self.depth += 1
        try:
            self.block(function.node.body, scope)
        except _Returned as returned:
            return returned.args[0]
        finally:
            self.depth -= 1
        return None
