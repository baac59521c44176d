"""A Python text that is edited in several passes: statements are found, added, moved and removed."""

import ast
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from allranks.contract.templating import PRIMITIVES
from allranks.errors import InputError
from allranks_studio.documents import python_imports
from allranks_studio.documents.canvas import Graph
from allranks_studio.documents.edits import Expression, FromInput, FromOutput, Literal, Value
from allranks_studio.documents.patches import Patch, applied
from allranks_studio.documents.python_outline import Made, Module, Pipeline, parsed
from allranks_studio.documents.python_source import Source, laid_out
from allranks_studio.documents.rewiring import node_at, refused


class Editor:
    """graph: of the text before any pass; path: of the file"""

    def __init__(self, text: str, graph: Graph, path: Path) -> None:
        self.text, self.graph, self.path = text, graph, path
        self._before = python_imports.used_names(self.source)
        self._imported: list[tuple[str, str]] = []

    @property
    def module(self) -> Module:
        return parsed(self.text)

    @property
    def source(self) -> Source:
        return self.module.source

    def apply(self, *patches: Patch) -> None:
        self.text = applied(self.text, patches)

    # Find

    def pipeline(self, path: str) -> Pipeline:
        """Return the function of the graph at a path, "" for the file's own."""
        found = self.module.root
        for name in path.split(".") if path else ():
            made = self._made(found, name) if found else None
            found = self.module.nested(made) if made else None
        if found is None:
            raise refused(f"step {path}", "no function of this file makes its steps", "", "edit the code")
        return found

    def made(self, path: str) -> tuple[Pipeline, Made]:
        """Return the call of the node at a path, and the function that it is in."""
        around, _, name = path.rpartition(".")
        pipeline = self.pipeline(around)
        made = self._made(pipeline, name) or self._made(pipeline, f"@{node_at(self.graph, path).first}")
        if made is None or made.lock is not None:
            fix = made.lock.text if made and made.lock else "edit the code"
            raise refused(f"step {path}", "it cannot be edited here", "", fix)
        return pipeline, made

    def _made(self, pipeline: Pipeline, key: str) -> Made | None:
        lines = (made for made in pipeline.made if f"@{made.statement.lineno}" == key and not made.lock)
        return next((made for made in reversed(pipeline.made) if made.key == key), None) or next(lines, None)

    def named(self, path: str) -> tuple[Pipeline, Made]:
        """Return what `made` returns, and assign the node to a variable of its name first if it has none."""
        pipeline, made = self.made(path)
        if not made.variable:
            self.assign(made, path.rpartition(".")[2])
            pipeline, made = self.made(path)
        return pipeline, made

    def assign(self, made: Made, variable: str) -> None:
        """Assign a node without a variable to one. Raise InputError if the code uses its name."""
        self.refuse_taken(variable)
        start = self.source.span(made.statement)[0]
        self.apply(Patch(start, start, f"{variable} = "))

    def refuse_taken(self, name: str) -> None:
        """Raise InputError if the code uses a name, which a new node or input would hide."""
        if name in self.source.taken:
            raise refused(f"name {name}", "the code uses it", "a name that is free", "choose another name")

    # Code

    def code(self, value: Value, kind: str, around: str) -> str:
        """Return the code of a value for a port of this type, in the function of the graph at a path."""
        match value:
            case FromInput(code) | Expression(code):
                return code
            case FromOutput(node, port):
                _, made = self.named(f"{around}.{node}".lstrip("."))
                last = f".{port}" if port.isidentifier() else f"[{self.source.literal(port)}]"
                return f"{made.variable}.outputs{last}"
            case Literal(literal) if not kind or kind in PRIMITIVES:
                return self.source.literal(literal)
            case Literal(literal):
                call = self.imported("azure.ai.ml", "Input")
                return f"{call}(type={self.source.literal(kind)}, path={self.source.literal(literal)})"

    def imported(self, module: str, name: str) -> str:
        """Return the name in this text of a name of a module, which is imported at the end if needed."""
        self._imported.append((module, name))  # an import would move the lines by which nodes are found
        return python_imports.imported(self.source, module, name)[0]

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
            self.apply(*([bracket.added(f"{name}={code}")] if code else []))
        elif code:
            self.apply(self.source.replaced(values[index], code))
        elif index < count - 1:
            raise in_use(name, call.lineno)
        else:
            self.apply(bracket.removed(index))

    # Statements

    def indent(self, pipeline: Pipeline) -> str:
        return self.source.indent(pipeline.function.body[0])

    def insert_after(self, statement: ast.stmt, code: str) -> None:
        """Insert a statement, without indentation of its first line, after another one."""
        self.apply(self.source.insertion(self.source.block(statement)[1], statement, code))

    def append(self, pipeline: Pipeline, code: str) -> None:
        """Insert a statement at the end of the function, before it returns."""
        last = pipeline.function.body[-1]
        if isinstance(last, ast.Pass):
            self.apply(self.source.replaced(last, code))
        elif isinstance(last, ast.Return):
            self.apply(self.source.insertion(self.source.above(self.source.block(last)[0]), last, code))
        else:
            self.insert_after(last, code)

    def remove(self, pipeline: Pipeline, *statements: ast.stmt) -> None:
        """Remove statements of the function."""
        for line in sorted((each.lineno for each in statements), reverse=True):  # so that the other lines stay
            body = self.module.pipelines[pipeline.function.name].function.body
            statement = next(each for each in body if each.lineno == line)
            is_only = len(body) == 1
            self.apply(self.source.replaced(statement, "pass") if is_only else self.source.removal(statement))

    def order(self, function: str) -> None:
        """Move statements of a function after those that assign what they use."""
        body = self.module.pipelines[function].function.body
        ordered = _ordered(body)
        if ordered != body:
            blocks = {each: self.source.block(each) for each in body}
            starts = [blocks[body[0]][0], *(blocks[each][1] for each in body)]
            texts = {each: self.text[start : blocks[each][1]] for each, start in zip(body, starts, strict=False)}
            moved = (texts[each].rstrip("\r\n") + self.source.newline for each in ordered)
            self.apply(Patch(starts[0], starts[-1], "".join(moved).lstrip("\r\n")))

    def names_in(self, pipeline: Pipeline, name: str) -> list[ast.Name]:
        """Return the uses of a variable in a function. Raise InputError for one that has no certain place."""
        nodes = [node for statement in pipeline.function.body for node in ast.walk(statement)]
        names = [each for each in nodes if isinstance(each, ast.Name) and each.id == name]
        for text in nodes:
            if isinstance(text, ast.JoinedStr) and any(each in names for each in ast.walk(text)):
                raise in_use(name, text.lineno)
        return names

    def result(self) -> str:
        """Return the text, with new imports, and without what the edit made superfluous."""
        for module, name in self._imported:
            self.apply(*python_imports.imported(self.source, module, name)[1])
        unused: set[str] = set()
        while more := self._before - python_imports.used_names(self.source) - unused:
            unused |= more
            for name in sorted(more):
                self.apply(*python_imports.without(self.source, name))
        return self.text


def in_use(name: str, line: int) -> InputError:
    """Return the error for a use that cannot be edited."""
    return refused(f"line {line}", f"this code uses {name}", "a call of a step", "edit this line first")


def _ordered(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return statements, each after those that assign what it uses, and after their settings."""
    times = Counter(name for each in body for name in _assigned(each))
    ordered, place, moves = [*body], 0, 0
    while place < len(ordered):
        used = {name for name in _used(ordered[place]) if times[name] == 1}
        target = max((n for n, each in enumerate(ordered) if used & _assigned(each)), default=place)
        names = _assigned(ordered[target])
        while target > place and target + 1 < len(ordered) and _is_setting(ordered[target + 1], names):
            target += 1
        if target > place and moves < 200:  # names may be used in a circle
            ordered.insert(target, ordered.pop(place))
            moves += 1
        else:
            place += 1
    return ordered


def _assigned(statement: ast.stmt) -> set[str]:
    targets = statement.targets if isinstance(statement, ast.Assign) else ()
    return {each.id for each in targets if isinstance(each, ast.Name)}


def _is_setting(statement: ast.stmt, names: set[str]) -> bool:
    """Return whether a statement only sets something of a node in one of these variables."""
    is_plain = isinstance(statement, (ast.Assign, ast.Expr)) and not _assigned(statement)
    return is_plain and bool(names & _used(statement))


def _used(statement: ast.stmt) -> set[str]:
    return {each.id for each in ast.walk(statement) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load)}
