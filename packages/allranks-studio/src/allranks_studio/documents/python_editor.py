"""A Python text that is edited in several passes: statements are found, added, moved and removed."""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from allranks.contract.templating import PRIMITIVES
from allranks.errors import InputError, Problem
from allranks_studio.documents import python_imports
from allranks_studio.documents.canvas import Graph
from allranks_studio.documents.edits import Expression, FromInput, FromOutput, Literal, Value
from allranks_studio.documents.patches import Patch, applied
from allranks_studio.documents.python_outline import Made, Module, Pipeline, parsed
from allranks_studio.documents.python_source import Source, laid_out
from allranks_studio.documents.rewiring import node_at


class Editor:
    """graph: of the text before any pass; path: of the file"""

    def __init__(self, text: str, graph: Graph, path: Path) -> None:
        self.text, self.graph, self.path = text, graph, path
        self._before = python_imports.used_names(self.source)

    @cached_property
    def module(self) -> Module:
        return parsed(self.text)

    @property
    def source(self) -> Source:
        return self.module.source

    def apply(self, *patches: Patch) -> None:
        self.text = applied(self.text, patches)
        vars(self).pop("module", None)

    # Find

    def pipeline(self, path: str) -> Pipeline:
        """Return the function of the graph at a path, "" for the file's own."""
        found = self.module.root
        for name in path.split(".") if path else ():
            made = self._made(found, name) if found else None
            found = self.module.nested(made) if made else None
        if found is None:
            raise InputError(Problem(f"step {path}", "no function of this file makes its steps", "", "edit the code"))
        return found

    def made(self, path: str) -> tuple[Pipeline, Made]:
        """Return the call of the node at a path, and the function that it is in."""
        around, _, name = path.rpartition(".")
        pipeline = self.pipeline(around)
        made = self._made(pipeline, name) or self._made(pipeline, f"@{node_at(self.graph, path).first}")
        if made is None or made.lock is not None:
            sentence = made.lock.text if made is not None and made.lock is not None else "edit the code"
            raise InputError(Problem(f"step {path}", "it cannot be edited here", "", sentence))
        return pipeline, made

    def _made(self, pipeline: Pipeline, key: str) -> Made | None:
        lines = (made for made in pipeline.made if f"@{made.statement.lineno}" == key and not made.lock)
        return next((made for made in reversed(pipeline.made) if made.key == key), None) or next(lines, None)

    def named(self, path: str) -> tuple[Pipeline, Made]:
        """Return what `made` returns, and assign the node to a variable of its name first if it has none."""
        pipeline, made = self.made(path)
        if not made.variable:
            start = self.source.span(made.statement)[0]
            self.apply(Patch(start, start, f"{path.rpartition('.')[2]} = "))
            pipeline, made = self.made(path)
        return pipeline, made

    def refuse_taken(self, name: str) -> None:
        """Raise InputError if the code uses a name, which a new node or input would hide."""
        if name in self.source.taken:
            raise InputError(Problem(f"name {name}", "the code uses it", "a name that is free", "choose another name"))

    # Code

    def code(self, value: Value, kind: str, around: str) -> str:
        """Return the code of a value for a port of this type, in the function of the graph at a path."""
        match value:
            case FromInput(name):
                return name
            case FromOutput(node, port):
                _, made = self.named(f"{around}.{node}".lstrip("."))
                last = f".{port}" if port.isidentifier() else f"[{self.source.literal(port)}]"
                return f"{made.variable}.outputs{last}"
            case Expression(text):
                return text
            case Literal(literal) if not kind or kind in PRIMITIVES:
                return self.source.literal(literal)
            case Literal(literal):
                call = self.imported("azure.ai.ml", "Input")
                return f"{call}(type={self.source.literal(kind)}, path={self.source.literal(literal)})"

    def imported(self, module: str, name: str) -> str:
        """Return the name in this text of a name of a module, which is imported if needed."""
        local, patches = python_imports.imported(self.source, module, name)
        self.apply(*patches)
        return local

    def call(self, head: str, arguments: Sequence[str], indent: str = "", tail: str = ")") -> str:
        """Return a call as code, in one line if it fits. head, tail: to the opening and from the closing bracket"""
        return f"{head}{laid_out(arguments, indent + head, tail, self.source)}{tail}"

    def argument(self, call: ast.Call, name: str, code: str, place: int = -1) -> None:
        """Set or add an argument of a call, or remove it if there is no code. place: where it may be without its name

        Raise InputError if an argument without a name follows the one to remove.
        """
        bracket, count = self.source.arguments(call), len(call.args)
        values = [*call.args, *(each.value for each in call.keywords)]
        names = {each.arg: index for index, each in enumerate(call.keywords, count)}
        index = names.get(name, place if 0 <= place < count else None)
        if index is None:
            is_named = not place == count > 1
            item = f"{name}={code}" if is_named else code
            self.apply(*([bracket.added(item, None if is_named else place)] if code else []))
        elif code:
            self.apply(self.source.replaced(values[index], code))
        elif index < count - 1:
            raise in_use(name, call.lineno)
        else:
            self.apply(bracket.removed(index))

    # Statements

    def indent(self, pipeline: Pipeline) -> str:
        first = pipeline.function.body[0]
        return self.text[self.source.start_of_line(first.lineno) : self.source.span(first)[0]]

    def insert_after(self, pipeline: Pipeline, statement: ast.stmt, code: str) -> None:
        """Insert a statement, without indentation of its first line, after another one of the function."""
        end = self.source.block(statement)[1]
        newline = self.source.newline
        before = "" if self.text[:end].endswith(("\n", "\r")) else newline
        self.apply(Patch(end, end, f"{before}{self.indent(pipeline)}{code}{newline}"))

    def append(self, pipeline: Pipeline, code: str) -> None:
        """Insert a statement at the end of the function, before it returns."""
        *others, last = pipeline.function.body
        if isinstance(last, ast.Pass) and not others:
            self.apply(self.source.replaced(last, code))
        elif not isinstance(last, ast.Return):
            self.insert_after(pipeline, last, code)
        elif others:
            self.insert_after(pipeline, others[-1], code)
        else:
            start = self.source.block(last)[0]
            self.apply(Patch(start, start, f"{self.indent(pipeline)}{code}{self.source.newline}"))

    def remove(self, pipeline: Pipeline, *statements: ast.stmt) -> None:
        """Remove statements of the function, with the comments above them and blank lines that would be left over."""
        blank = re.compile(r"[ \t]*(\r\n|\n|\r)")
        for line in sorted((each.lineno for each in statements), reverse=True):  # so that the other lines stay
            body = self.module.pipelines[pipeline.function.name].function.body
            statement = next(each for each in body if each.lineno == line)
            start, end = self.source.block(statement)
            line_before = self.source.start_of_line(self.text.count("\n", 0, start)) if start else 0
            following = blank.match(self.text, end)
            if following and (body[0] is statement or blank.fullmatch(self.text[line_before:start])):
                end = following.end()
            is_only = len(body) == 1
            self.apply(self.source.replaced(statement, "pass") if is_only else Patch(start, end, ""))

    def order(self, function: str) -> None:
        """Move statements of a function after those that assign what they use.

        Raise InputError if a statement would move past one that changes a variable that it uses.
        """
        for _ in range(200):
            pipeline = self.module.pipelines[function]
            body = pipeline.function.body
            times = Counter(name for each in body for name in _assigned(each))
            assigned = {name: place for place, each in enumerate(body) for name in _assigned(each) if times[name] == 1}
            for place, statement in enumerate(body):
                late = [assigned[name] for name in _loaded(statement) if assigned.get(name, -1) > place]
                if late:
                    break
            else:
                return
            after = max(late)
            names = set(_assigned(body[after]))
            while after + 1 < len(body) and _is_setting(body[after + 1], names):
                after += 1
            for each in body[place + 1 : after + 1]:
                if changed := [name for name in _assigned(each) if times[name] > 1 and name in _loaded(statement)]:
                    raise in_use(changed[0], each.lineno)
            start, end = self.source.block(statement)
            target = self.source.block(body[after])[1]
            moved = self.text[start:end]
            before = "" if self.text[:target].endswith(("\n", "\r")) else self.source.newline
            self.apply(Patch(start, end, ""), Patch(target, target, before + moved))

    def names_in(self, pipeline: Pipeline, name: str) -> list[ast.Name]:
        """Return the uses of a variable in a function. Raise InputError for one that has no certain place."""
        texts = [each for each in ast.walk(pipeline.function) if isinstance(each, ast.JoinedStr)]
        for text in texts:
            if any(isinstance(each, ast.Name) and each.id == name for each in ast.walk(text)):
                raise in_use(name, text.lineno)
        return [each for each in ast.walk(pipeline.function) if isinstance(each, ast.Name) and each.id == name]

    def result(self) -> str:
        """Return the text, without imports, loaded components and pipelines that the edit made superfluous."""
        unused: set[str] = set()
        while more := self._before - python_imports.used_names(self.source) - unused:
            unused |= more
            for name in sorted(more):
                self.apply(*python_imports.without(self.source, name))
        return self.text


def in_use(name: str, line: int) -> InputError:
    """Return the error for a use that cannot be edited."""
    return InputError(Problem(f"line {line}", f"this code uses {name}", "a call of a step", "edit this line first"))


def _assigned(statement: ast.stmt) -> list[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else ()
    return [each.id for each in targets if isinstance(each, ast.Name)]


def _is_setting(statement: ast.stmt, names: set[str]) -> bool:
    """Return whether a statement only sets something of a node in one of these variables."""
    is_plain = isinstance(statement, (ast.Assign, ast.Expr)) and not _assigned(statement)
    return is_plain and bool(names.intersection(_loaded(statement)))


def _loaded(statement: ast.stmt) -> Iterator[str]:
    return (each.id for each in ast.walk(statement) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load))
