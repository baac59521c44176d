"""Evaluate a v1 script without running it: the objects of azureml that it makes, with the values that are known.

Functions are entered where they are called, otherwise with the defaults of their parameters. Of a branch whose
condition is unknown, both sides are evaluated; of a loop over unknown items, the body once.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from allranks.errors import InputError, Problem
from allranks.sdk import notebook
from allranks.sdk.paths import shown

_MOST_ITEMS = 20
_DEEPEST = 8


@dataclass(frozen=True)
class Unknown:
    """A value that the file does not tell. text: its expression"""

    text: str


@dataclass(frozen=True)
class Name:
    """A class, function or module that is imported: ``azureml.core.Environment``."""

    dotted: str


@dataclass(frozen=True, eq=False)
class Made:
    """An object of azureml: what a call of its class, or of a method, returns.

    kind:       the class, with the method that made it: ``Environment.get``; a method of an object: ``as_mount``
    receiver:   the object whose method it is
    attributes: what the script sets later, by dotted name; filled during the evaluation
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


@dataclass(frozen=True)
class Script:
    """A v1 script.

    made:      the objects of azureml, in order
    variables: the name of the variable that an object is assigned to, by the object's id
    comments:  the comments with their lines, in order
    start:     the line of the first statement
    place:     returns the place of a line, for messages
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
    try:
        wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    except (cst.ParserSyntaxError, RecursionError) as error:
        line = getattr(error, "raw_line", 1)
        raise InputError(Problem(place(line), "it is not Python that can be parsed", "a script of SDK v1")) from None
    lines = {node: at.start.line for node, at in wrapper.resolve(PositionProvider).items()}
    evaluation = _Evaluation(path, lines)
    evaluation.block(wrapper.module.body, evaluation.globals)
    for function in evaluation.functions:
        if id(function.node) not in evaluation.called:
            evaluation.call(function, (), {})
    comments = tuple(sorted((line, each.value) for each, line in lines.items() if isinstance(each, cst.Comment)))
    start = min((lines[node] for node in wrapper.module.body), default=1)
    return Script(path, tuple(evaluation.made), evaluation.variables, comments, start, place)


def _source(path: Path) -> tuple[str, Callable[[int], str]]:
    """Return the Python of a file, and a function that returns the place of a line of it."""
    if path.suffix != ".ipynb":
        try:
            return path.read_text(encoding="utf-8-sig"), lambda line: f"{shown(path)}:{line}"
        except UnicodeDecodeError:
            raise InputError(Problem(shown(path), "it is not UTF-8", "a Python file of SDK v1")) from None
    lines, places = list[str](), list[str]()
    for cell in notebook.cells(path):
        is_python = not cell.source.startswith("%%")
        for number, line in enumerate(cell.source.splitlines(), 1):
            code = line.strip()
            is_code = is_python and not code.startswith(("!", "%", "?")) and not code.endswith("?")
            lines.append(line if is_code else f"{line[: len(line) - len(line.lstrip())]}pass" if is_python else "")
            places.append(f"{shown(path)}, cell {cell.number}, line {number}")
    return "\n".join(lines) + "\n", lambda line: places[min(line, len(places)) - 1] if places else shown(path)


@dataclass(frozen=True, eq=False)
class _Function:
    node: cst.FunctionDef
    scope: Mapping[str, Any]


class _Returned(Exception):
    """Ends the evaluation of a function."""


class _Evaluation:
    """The evaluation of one file. It has a class because every method needs the same state."""

    def __init__(self, path: Path, lines: Mapping[cst.CSTNode, int]) -> None:
        self.lines = lines
        self.made: list[Made] = []
        self.variables: dict[int, str] = {}
        self.functions: list[_Function] = []
        self.called: set[int] = set()
        self.depth = 0
        self.globals: dict[str, Any] = {"__file__": path.absolute(), "__name__": "__main__"}

    def block(self, statements: Iterable[cst.CSTNode], scope: dict[str, Any]) -> None:
        for statement in statements:
            self.statement(statement, scope)

    def statement(self, node: Any, scope: dict[str, Any]) -> None:
        match node:
            case cst.SimpleStatementLine():
                self.block(node.body, scope)
            case cst.FunctionDef():
                scope[node.name.value] = _Function(node, scope)
                self.functions.append(scope[node.name.value])
            case cst.ClassDef():
                fields: dict[str, Any] = {}
                self.block([each for each in node.body.body if isinstance(each, cst.SimpleStatementLine)], fields)
                scope[node.name.value] = fields
            case cst.If():
                test = self.value(node.test, scope)
                if node.orelse is not None and (not test or not _is_known(test)):
                    self.statement(node.orelse, scope)
                if test or not _is_known(test):
                    self.block(node.body.body, scope)
            case cst.For():
                items = self.value(node.iter, scope)
                is_listed = isinstance(items, (list, tuple, dict, range))
                for item in list(items)[:_MOST_ITEMS] if is_listed else [Unknown("item")]:
                    self.assign(node.target, item, scope)
                    self.block(node.body.body, scope)
            case cst.Try():
                self.block([each for handler in node.handlers for each in handler.body.body], scope)
                self.block(node.body.body, scope)
            case cst.With():
                for item in node.items:
                    opened = self.value(item.item, scope)
                    if item.asname is not None:
                        self.assign(item.asname.name, opened, scope)
                self.block(node.body.body, scope)
            case cst.While() | cst.Else():
                self.block(node.body.body, scope)
            case cst.Assign():
                value = self.value(node.value, scope)
                for target in node.targets:
                    self.assign(target.target, value, scope)
            case cst.AnnAssign():
                value = Unknown(_text(node.target)) if node.value is None else self.value(node.value, scope)
                self.assign(node.target, value, scope)
            case cst.AugAssign(operator=cst.AddAssign()):
                values = (self.value(node.target, scope), self.value(node.value, scope))
                added = _applied(operator.add, *values)
                self.assign(node.target, Unknown(_text(node.target)) if added is _NOTHING else added, scope)
            case cst.Expr():
                self.value(node.value, scope)
            case cst.Return():
                raise _Returned(None if node.value is None else self.value(node.value, scope))
            case cst.Import():
                for alias in node.names:
                    dotted = _text(alias.name)
                    name = _text(alias.asname.name) if alias.asname else dotted.partition(".")[0]
                    scope[name] = Name(dotted if alias.asname else name)
            case cst.ImportFrom(module=cst.Attribute() | cst.Name(), names=[*names]):
                for alias in names:
                    name = _text(alias.asname.name if alias.asname else alias.name)
                    scope[name] = Name(f"{_text(node.module or alias)}.{_text(alias.name)}")

    def assign(self, target: Any, value: Any, scope: dict[str, Any]) -> None:
        match target:
            case cst.Name():
                scope[target.value] = value
                if isinstance(value, Made):
                    self.variables.setdefault(id(value), target.value)
            case cst.Tuple() | cst.List():
                values = value if isinstance(value, (list, tuple)) else [Unknown(_text(target))] * len(target.elements)
                for element, part in zip(target.elements, values, strict=False):
                    self.assign(element.value, part, scope)
            case cst.Attribute():
                owner, path = self.owner(target, scope)
                attributes = owner.attributes if isinstance(owner, Made) else owner
                if isinstance(attributes, dict):
                    attributes[path] = value
            case cst.Subscript():
                owner, key = self.value(target.value, scope), self.index(target, scope)
                if isinstance(owner, dict) and isinstance(key, (str, int)):
                    owner[key] = value

    def owner(self, node: cst.Attribute, scope: Mapping[str, Any]) -> tuple[Any, str]:
        """Return the object that a dotted name belongs to, and the rest of the name: (environment, docker.enabled)."""
        names, inner = [node.attr.value], node.value
        while isinstance(inner, cst.Attribute):
            names.insert(0, inner.attr.value)
            inner = inner.value
        owner = self.value(inner, scope)
        if not isinstance(owner, (Made, Name)):
            return (self.value(node.value, scope) if len(names) > 1 else owner), node.attr.value
        while isinstance(owner, Made):
            known = [size for size in range(1, len(names)) if ".".join(names[:size]) in owner.attributes]
            if not known:
                break
            owner, names = owner.attributes[".".join(names[: known[-1]])], names[known[-1] :]
        return owner, ".".join(names)

    def value(self, node: Any, scope: Mapping[str, Any]) -> Any:
        """Return the value of an expression, Unknown if the file does not tell it."""
        found = self._value(node, scope)
        return Unknown(_text(node)) if found is _NOTHING else found

    def _value(self, node: Any, scope: Mapping[str, Any]) -> Any:
        match node:
            case cst.SimpleString() | cst.ConcatenatedString() | cst.Integer() | cst.Float():
                text = node.evaluated_value
                return _NOTHING if text is None else text
            case cst.Ellipsis():  # a sample's "fill this in"
                return None
            case cst.Name():
                known = {"True": True, "False": False, "None": None, **self.globals, **scope}
                sample = Name(f"azureml.core.{node.value}") if node.value in _CLASSES else _NOTHING
                return known.get(node.value, sample)
            case cst.List() | cst.Tuple():
                items: list[Any] = []
                for element in node.elements:
                    item = self.value(element.value, scope)
                    items += item if isinstance(element, cst.StarredElement) and isinstance(item, list) else [item]
                return items if isinstance(node, cst.List) else tuple(items)
            case cst.Dict():
                pairs = [each for each in node.elements if isinstance(each, cst.DictElement)]
                listed = [(self.value(each.key, scope), self.value(each.value, scope)) for each in pairs]
                return {key: value for key, value in listed if isinstance(key, (str, int, Unknown))}
            case cst.FormattedString():
                parts = [
                    self.value(part.expression, scope)
                    if isinstance(part, cst.FormattedStringExpression)
                    else _text(part)
                    for part in node.parts
                ]
                return "".join(map(str, parts)) if all(map(_is_plain, parts)) else _NOTHING
            case cst.UnaryOperation(operator=cst.Minus()):
                return _applied(operator.neg, self.value(node.expression, scope))
            case cst.BinaryOperation():
                values = (self.value(node.left, scope), self.value(node.right, scope))
                return _applied(_OPERATORS.get(type(node.operator)), *values)
            case cst.Comparison(comparisons=[comparison]):
                values = (self.value(node.left, scope), self.value(comparison.comparator, scope))
                return _applied(_OPERATORS.get(type(comparison.operator)), *values)
            case cst.IfExp():
                return self.value(node.body if self.value(node.test, scope) else node.orelse, scope)
            case cst.Subscript():
                owner, key = self.value(node.value, scope), self.index(node, scope)
                if isinstance(owner, Made):
                    return self.new("[]", (key,), {}, node, owner)
                return _applied(operator.getitem, owner, key)
            case cst.Attribute():
                return self.attribute(node, scope)
            case cst.Call():
                return self.calling(node, scope)
        return _NOTHING

    def index(self, node: cst.Subscript, scope: Mapping[str, Any]) -> Any:
        index = node.slice[0].slice
        return self.value(index.value, scope) if isinstance(index, cst.Index) else None

    def attribute(self, node: cst.Attribute, scope: Mapping[str, Any]) -> Any:
        match self.owner(node, scope):
            case (Name() as owner, path):
                return Name(f"{owner.dotted}.{path}")
            case (Made() as owner, path):
                return owner.attributes[path] if path in owner.attributes else self.new(path, (), {}, node, owner)
            case (dict() as owner, path):
                return owner.get(path, _NOTHING)
            case (PurePath() as owner, "parent" | "name" | "stem" as path):
                return getattr(owner, path)
        return _NOTHING

    def calling(self, node: cst.Call, scope: Mapping[str, Any]) -> Any:
        values = tuple(self.value(each.value, scope) for each in node.args if each.keyword is None and not each.star)
        named = {each.keyword.value: self.value(each.value, scope) for each in node.args if each.keyword is not None}
        for each in node.args:
            if each.star == "**" and isinstance(given := self.value(each.value, scope), dict):
                named |= {str(name): value for name, value in given.items()}
        if isinstance(node.func, cst.Attribute):
            owner, method = self.owner(node.func, scope)
            if isinstance(owner, Made):
                return self.new(method, values, named, node, owner)
            if not isinstance(owner, (Name, Unknown)):
                return _method(owner, method, values)
            function: Any = Name(f"{owner.dotted}.{method}") if isinstance(owner, Name) else None
        else:
            function = self.value(node.func, scope)
        match function:
            case _Function():
                return self.call(function, values, named)
            case dict():  # a class of the script, such as a dataclass
                return {**function, **dict(zip(function, values, strict=False)), **named}
            case Name() if function.dotted.startswith("azureml"):
                return self.new(_kind(function.dotted), values, named, node)
        name = function.dotted if isinstance(function, Name) else _text(node.func)
        return _applied(_FUNCTIONS.get(name), *values)

    def new(
        self, kind: str, values: tuple[Any, ...], named: Mapping[str, Any], node: Any, receiver: Made | None = None
    ) -> Made:
        made = Made(kind, values, named, self.lines[node], receiver)
        self.made.append(made)
        if receiver is not None:
            receiver.calls.append(made)
        return made

    def call(self, function: _Function, values: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """Return what a function of the script returns."""
        self.called.add(id(function.node))
        if self.depth >= _DEEPEST:
            return _NOTHING
        parameters = function.node.params
        scope = dict(function.scope)
        for index, parameter in enumerate([*parameters.posonly_params, *parameters.params, *parameters.kwonly_params]):
            name = parameter.name.value
            default = Unknown(name) if parameter.default is None else self.value(parameter.default, function.scope)
            scope[name] = values[index] if index < len(values) else named.get(name, default)
        self.depth += 1
        try:
            self.block(function.node.body.body, scope)
        except _Returned as returned:
            return returned.args[0]
        finally:
            self.depth -= 1
        return None


_NOTHING = object()
_CLASSES = frozenset(
    """Environment Experiment ScriptRunConfig Workspace Dataset MpiConfiguration PyTorchConfiguration Pipeline
    TensorflowConfiguration Estimator HyperDriveConfig PythonScriptStep PipelineData OutputFileDatasetConfig
    ParallelRunConfig ParallelRunStep RunConfiguration CondaDependencies""".split()  # noqa: SIM905
)
"""Classes that a sample may use without importing them."""


def _product(left: Any, right: Any) -> Any:
    """Return the product of two numbers. A text or a list could become too long for the memory."""
    if not all(isinstance(each, (int, float)) for each in (left, right)):
        raise TypeError
    return left * right


def _items(values: Any = ()) -> list[Any]:
    return list(values[:_MOST_ITEMS])


_OPERATORS: dict[type, Callable[..., Any]] = {
    cst.Add: operator.add, cst.Subtract: operator.sub, cst.Multiply: _product, cst.Divide: operator.truediv,
    cst.FloorDivide: operator.floordiv, cst.Modulo: operator.mod, cst.Equal: operator.eq, cst.NotEqual: operator.ne,
}  # fmt: skip
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "str": str, "int": int, "float": float, "len": len, "list": _items, "range": range, "dict": dict, "Path": Path,
    "os.path.join": os.path.join, "os.path.dirname": os.path.dirname, "os.path.basename": os.path.basename,
    "os.path.abspath": os.fspath, "os.path.realpath": os.fspath, "os.getcwd": lambda: ".",
    "pathlib.Path": Path, "pathlib.Path.cwd": Path,
}  # fmt: skip
"""Functions that need nothing of this machine."""

_METHODS: dict[type, tuple[str, ...]] = {
    str: ("split", "strip", "lower", "upper", "join", "replace", "format", "rstrip", "lstrip"),
    PurePath: ("joinpath", "absolute", "as_posix"),
    list: ("append", "extend"),
    dict: ("get", "keys", "values", "items", "update"),
}


def _applied(function: Callable[..., Any] | None, *values: Any) -> Any:
    """Return what a function returns for known values."""
    if function is None or not all(map(_is_known, values)):
        return _NOTHING
    try:
        return function(*values)
    except (TypeError, ValueError, LookupError, ArithmeticError):
        return _NOTHING


def _method(owner: Any, method: str, values: tuple[Any, ...]) -> Any:
    """Return what a method returns that needs nothing of this machine."""
    if isinstance(owner, PurePath) and method == "resolve":
        return owner
    if not any(isinstance(owner, kind) and method in names for kind, names in _METHODS.items()):
        return _NOTHING
    if isinstance(owner, (list, dict)):
        try:
            found = getattr(owner, method)(*values)
        except (TypeError, ValueError):
            return _NOTHING
        return list(found) if method in ("keys", "values", "items") else found
    plain = all(map(_is_plain, (part for value in values for part in (value if isinstance(value, list) else [value]))))
    return _applied(getattr(owner, method), *values) if plain else _NOTHING


def _kind(dotted: str) -> str:
    """Return a class with its method: ``Environment.get``; the name of a function: ``choice``."""
    parts = dotted.split(".")
    classes = [index for index, part in enumerate(parts) if part[:1].isupper()]
    return ".".join(parts[classes[0] :]) if classes else parts[-1]


def _text(node: cst.CSTNode) -> str:
    return cst.Module([]).code_for_node(node)


def _is_known(value: Any) -> bool:
    return not isinstance(value, (Unknown, Made, Name))


def _is_plain(value: Any) -> bool:
    return isinstance(value, (str, int, float, PurePath, type(None)))
