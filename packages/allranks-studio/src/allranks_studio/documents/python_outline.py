"""The calls in a Python file that make nodes: where they are, and what they set."""

import ast
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import TypeGuard

from allranks_studio.documents.canvas import Lock
from allranks_studio.documents.edits import Expression, FromInput, FromOutput, Literal, Value
from allranks_studio.documents.python_source import Source, parameters_of
from allranks_studio.documents.source import NodePlace, Outline, ValuePlace

_LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_HELPERS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SENTENCES = {
    "loop": "A loop makes this step; edit the loop.",
    "helper": "A function makes this step; edit the function.",
    "expression": "An expression or an if statement makes this step; edit that code.",
}


@dataclass
class Made:
    """A call that may make a node.

    key:      the node's name, or "@" and the line of the call if the text does not tell it
    variable: "" if there is none
    inputs:   the code of each input that is set
    layouts:  calls of `layout` for it
    settings: other statements that set something of it. Those of a sweep begin with the step that it repeats
    """

    key: str
    variable: str
    call: ast.Call
    statement: ast.stmt
    lock: Lock | None = None
    inputs: dict[str, ast.expr] = field(default_factory=dict)
    layouts: list[ast.Call] = field(default_factory=list)
    settings: list[ast.stmt] = field(default_factory=list)

    @property
    def statements(self) -> list[ast.stmt]:
        """All statements of the node, in order."""
        return sorted([self.statement, *self.settings], key=lambda each: each.lineno)

    def setting(self, *names: str) -> ast.Assign | None:
        """Return the last statement ``step.NAME.NAME = ...``, which sets something of the node."""
        found = (each for each in reversed(self.settings) if isinstance(each, ast.Assign))
        return next((each for each in found if set_by(each) == names), None)


class Pipeline:
    """A function with `@pipeline`."""

    def __init__(self, source: Source, function: ast.FunctionDef) -> None:
        self.source, self.function = source, function
        self.parameters = {argument.arg: (argument, default) for argument, default in parameters_of(function)}
        last = function.body[-1]
        self.result = last.value if isinstance(last, ast.Return) and isinstance(last.value, ast.Dict) else None
        self.made: list[Made] = []
        self._by_variable: dict[str, Made] = {}
        self._aliases: dict[str, ast.expr] = {}
        for statement in function.body:
            self._read(statement)

    @property
    def outputs(self) -> dict[str, ast.expr]:
        """The code of each output in the dictionary that the function returns."""
        entries = zip(self.result.keys, self.result.values, strict=True) if self.result else ()
        return {str(getattr(key, "value", "")): value for key, value in entries}

    def by_variable(self, variable: str) -> Made | None:
        """Return the last call whose node is in a variable."""
        return self._by_variable.get(variable)

    def _read(self, statement: ast.stmt) -> None:
        target, value = _sides(statement)
        if made := self.node_set_by(statement):
            made.settings.append(statement)
            if target is None and is_layout(value):
                made.layouts.append(value)
            if target is not None and value is not None and (name := _port(target, "inputs")):
                made.inputs[name] = value
            if set_by(statement) == ("name",):
                made.key = str(value.value) if isinstance(value, ast.Constant) else f"@{made.call.lineno}"
        elif isinstance(value, ast.Call) and (target is None or isinstance(target, ast.Name)):
            variable = target.id if isinstance(target, ast.Name) else ""
            inner = value.args[0] if is_layout(value) and value.args else None
            call = inner if isinstance(inner, ast.Call) else value
            made = Made(variable or f"@{call.lineno}", variable, call, statement)
            made.inputs = {each.arg: each.value for each in call.keywords if each.arg}
            made.layouts += [value] if call is not value else []
            if last_name(call.func) == "sweep" and (step := self._by_variable.pop(root_of(call.func), None)):
                self.made.remove(step)
                step.settings.insert(0, step.statement)
                made = replace(step, key=made.key, variable=variable, statement=statement)
            self.made.append(made)
            if earlier := self.by_variable(variable):
                earlier.key = f"@{earlier.call.lineno}"
            if variable:
                self._by_variable[variable] = made
            self._add_locked(statement, call)
        else:
            if isinstance(target, ast.Name) and value is not None:
                self._aliases[target.id] = value
            self._add_locked(statement, None)

    def node_set_by(self, statement: ast.stmt) -> Made | None:
        """Return the node of which a statement sets something: ``train.compute = "gpu"``, ``layout(train, 2)``,
        ``train.set_limits()``."""
        target, value = _sides(statement)
        if target is None and is_layout(value) and value.args:
            return self.by_variable(root_of(value.args[0]))
        code = value.func if target is None and isinstance(value, ast.Call) else target
        return self.by_variable(root_of(code)) if isinstance(code, (ast.Attribute, ast.Subscript)) else None

    def _add_locked(self, statement: ast.stmt, own: ast.Call | None) -> None:
        """Add the calls within a statement, which cannot be edited."""

        def visit(node: ast.AST, reason: str) -> None:
            for child in ast.iter_child_nodes(node):
                inner = _reason(child, reason)
                if isinstance(child, ast.Call) and child is not own:
                    lock = Lock(inner, _SENTENCES[inner], child.lineno)  # type: ignore[arg-type]
                    self.made.append(Made(f"@{child.lineno}", "", child, statement, lock))
                visit(child, inner)

        visit(statement, _reason(statement, "expression"))

    def value(self, code: ast.expr) -> Value:
        """Return what code of this function means as a value."""
        seen = 0
        while isinstance(code, ast.Name) and code.id in self._aliases and seen < 9:
            code, seen = self._aliases[code.id], seen + 1
        if isinstance(code, ast.Name) and code.id in self.parameters:
            return FromInput(code.id)
        if (name := _port(code, "outputs")) is not None and (made := self.by_variable(root_of(code))) is not None:
            return FromOutput(made.key, name)
        if isinstance(code, ast.Call) and root_of(code.func) == "Input":
            paths = [each.value for each in code.keywords if each.arg == "path"]
            code = paths[0] if len(paths) == 1 else code
        try:
            literal = ast.literal_eval(code)
        except (ValueError, TypeError, SyntaxError, RecursionError):
            literal = ()
        is_plain = literal is None or isinstance(literal, (str, int, float, bool))
        return Literal(literal) if is_plain else Expression(self.source.code(code))

    def uses(self, code: ast.AST, values: Collection[Value]) -> list[ast.expr]:
        """Return the parts of code that mean one of some values."""
        is_use = isinstance(code, (ast.Attribute, ast.Subscript, ast.Name)) and isinstance(code.ctx, ast.Load)
        if is_use and isinstance(code, ast.expr) and self.value(code) in values:
            return [code]
        return [each for child in ast.iter_child_nodes(code) for each in self.uses(child, values)]

    def at(self, code: ast.expr) -> ValuePlace:
        return ValuePlace(self.value(code), code.lineno)


def _sides(statement: ast.stmt) -> tuple[ast.expr | None, ast.expr | None]:
    """Return the only target of an assignment, and the value of an assignment or an expression."""
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    return target, statement.value if isinstance(statement, (ast.Assign, ast.Expr)) else None


def _reason(code: ast.AST, otherwise: str) -> str:
    """Return why a step that this code makes is locked."""
    return "loop" if isinstance(code, _LOOPS) else "helper" if isinstance(code, _HELPERS) else otherwise


@lru_cache(maxsize=4)
def parsed(text: str) -> "Module":
    """Return the module of a text. An edit needs that of the same text several times."""
    return Module(text)


class Module:
    """A Python file with its pipeline functions."""

    def __init__(self, text: str) -> None:
        self.source = Source(text)
        functions = (node for node in ast.walk(self.source.tree) if isinstance(node, ast.FunctionDef))
        self.pipelines = {each.name: Pipeline(self.source, each) for each in functions if decorator_of(each)}

    @cached_property
    def root(self) -> Pipeline | None:
        """The file's pipeline: the function that no other pipeline calls, preferably one that the module calls."""
        inside = {root_of(made.call.func) for each in self.pipelines.values() for made in each.made}
        top = [each for name, each in self.pipelines.items() if name not in inside] or [*self.pipelines.values()]
        outside = [each for each in self.source.tree.body if isinstance(each, (ast.Assign, ast.Expr))]
        called = {root_of(node.func) for each in outside for node in ast.walk(each) if isinstance(node, ast.Call)}
        return next((each for each in top if each.function.name in called), top[-1] if top else None)

    def nested(self, made: Made) -> Pipeline | None:
        """Return the pipeline of this file that a call makes a node of."""
        return self.pipelines.get(made.call.func.id) if isinstance(made.call.func, ast.Name) else None

    def outline(self) -> Outline:
        nodes = dict[str, NodePlace]()
        inputs, outputs = dict[tuple[str, str], ValuePlace](), dict[tuple[str, str], ValuePlace]()

        def visit(pipeline: Pipeline, path: str, depth: int) -> None:
            for name, (argument, default) in pipeline.parameters.items():
                value = pipeline.value(default) if default is not None else Literal(None)
                inputs[path, name] = ValuePlace(value, argument.lineno)
            for name, code in pipeline.outputs.items():
                outputs[path, name] = pipeline.at(code)
            for made in reversed(pipeline.made):
                for key in {made.key, f"@{made.call.lineno}"}:
                    nodes[f"{path}.{key}".lstrip(".")] = self._placed(pipeline, made)
                    if (inner := self.nested(made)) is not None and depth < 9:
                        visit(inner, f"{path}.{key}".lstrip("."), depth + 1)

        if self.root is not None:
            visit(self.root, "", 0)
        return Outline(nodes, inputs, outputs, self.source.taken)

    def _placed(self, pipeline: Pipeline, made: Made) -> NodePlace:
        inner = self.nested(made)
        by_place = zip(inner.parameters if inner else (), made.call.args, strict=False)
        code: ast.expr | ast.stmt = made.call if made.lock else made.statement
        inputs = {name: pipeline.at(value) for name, value in (dict(by_place) | made.inputs).items()}
        return NodePlace(min(made.call.lineno, code.lineno), code.end_lineno or code.lineno, made.lock, inputs)


def decorator_of(function: ast.FunctionDef) -> ast.expr | None:
    """Return the decorator `@pipeline`, or `@dsl.pipeline(...)`, of a function that has one."""
    return next((each for each in function.decorator_list if last_name(each) == "pipeline"), None)


def is_layout(code: ast.AST | None) -> TypeGuard[ast.Call]:
    """Return whether code is a call of `allranks.layout`."""
    return isinstance(code, ast.Call) and last_name(code) == "layout"


def last_name(code: ast.AST) -> str:
    """Return the last name of code, or of the function that it calls: "pipeline" for ``dsl.pipeline()``."""
    name = code.func if isinstance(code, ast.Call) else code
    return name.attr if isinstance(name, ast.Attribute) else getattr(name, "id", "")


def root_of(code: ast.AST) -> str:
    """Return the name at the beginning of ``name.attribute["key"]``; "" if there is none."""
    while isinstance(code, (ast.Attribute, ast.Subscript)):
        code = code.value
    return code.id if isinstance(code, ast.Name) else ""


def _port(code: ast.AST, side: str) -> str | None:
    """Return the port of ``step.outputs.NAME``; None for other code."""
    names = _names_after(code)
    return names[1] or None if len(names) == 2 and names[0] == side and root_of(code) else None


def set_by(statement: ast.stmt) -> tuple[str, ...]:
    """Return what a statement sets: ("resources", "instance_count") for ``train.resources.instance_count = 2``."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        return _names_after(statement.value.func)
    return _names_after(statement.targets[0]) if isinstance(statement, ast.Assign) else ()


def _names_after(code: ast.AST) -> tuple[str, ...]:
    """Return the names after the first of ``name.attribute["key"]``; "" for a key that is not a constant."""
    names: list[str] = []
    while isinstance(code, (ast.Attribute, ast.Subscript)):
        names.insert(0, code.attr if isinstance(code, ast.Attribute) else str(getattr(code.slice, "value", "")))
        code = code.value
    return tuple(names)
