"""The text of a Python file with its syntax tree, and lists in brackets that grow and shrink in the file's style."""

import ast
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from allranks.errors import InputError, Problem
from allranks_studio.documents.patches import Patch, applied

Span = tuple[int, int]


class Source:
    """A text that was parsed. Raise InputError, with the line, if it is not Python."""

    def __init__(self, text: str) -> None:
        self.text = text
        try:
            self.tree = ast.parse(text)
        except SyntaxError as error:
            raise InputError(Problem(f"line {error.lineno or 1}", f"it is not Python: {error.msg}", "Python")) from None
        except (ValueError, RecursionError, MemoryError) as error:
            raise InputError(Problem("line 1", f"it is not Python: {error}", "Python")) from None
        self._starts = [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", text)), len(text)]

    @cached_property
    def newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"

    @cached_property
    def width(self) -> int:
        """The length of a line that the file's style allows."""
        return max(88, min(120, max((len(line.rstrip()) for line in self.text.splitlines()), default=0)))

    @cached_property
    def unit(self) -> str:
        """The indentation of a block."""
        inside = (
            node.body[0].col_offset - node.col_offset for node in ast.walk(self.tree) if isinstance(node, _BLOCKS)
        )
        return "\t" if "\n\t" in self.text else " " * min((each for each in inside if each > 0), default=4)

    @cached_property
    def taken(self) -> set[str]:
        """The names of the file's functions, imports and variables."""
        nodes = [*ast.walk(self.tree)]
        functions = {each.name for each in nodes if isinstance(each, ast.FunctionDef)}
        imported = {each.asname or each.name for each in nodes if isinstance(each, ast.alias)}
        return functions | imported | {each.id for each in nodes if isinstance(each, ast.Name)}

    def start_of_line(self, line: int) -> int:
        """Return the offset of a line, from 1; the end of the text for the line after the last one."""
        return self._starts[min(line, len(self._starts)) - 1]

    def offset(self, line: int, column: int) -> int:
        """Return the offset of a place of the syntax tree, which counts bytes."""
        start, end = self.start_of_line(line), self.start_of_line(line + 1)
        content = self.text[start:end]
        return start + (column if content.isascii() else len(content.encode()[:column].decode(errors="ignore")))

    def span(self, node: ast.expr | ast.stmt | ast.arg | ast.keyword | ast.alias) -> Span:
        end_line, end = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self.offset(node.lineno, node.col_offset), self.offset(end_line, end)

    def code(self, node: ast.expr | ast.stmt | ast.keyword) -> str:
        start, end = self.span(node)
        return self.text[start:end]

    def replaced(self, node: ast.expr | ast.stmt | ast.arg, code: str) -> Patch:
        return Patch(*self.span(node), code)

    def changed(self, span: Span, patches: Iterable[Patch]) -> str:
        """Return the text of a span with patches inside of it."""
        return applied(self.text[: span[1]], patches)[span[0] :]

    def literal(self, value: object) -> str:
        """Return a value as code, with the quotes that the file uses."""
        uses_double = self.text.count('"') >= self.text.count("'")
        return json.dumps(value, ensure_ascii=False) if isinstance(value, str) and uses_double else repr(value)

    def block(self, statement: ast.stmt) -> Span:
        """Return the lines of a statement, with the comments directly above it.

        Raise InputError if another statement is on its lines.
        """
        first = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", ()))])
        start, end = self.start_of_line(first), self.start_of_line((statement.end_lineno or first) + 1)
        before = self.text[start : self.offset(first, statement.col_offset)]
        after = self.text[self.span(statement)[1] : end].strip()
        if before.strip() or after[:1] not in ("", "#"):
            raise InputError(Problem(f"line {first}", "it has several statements", "one", "write each on its own line"))
        while first > 1 and self._line(first - 1).startswith(f"{before}#"):
            first -= 1
        return self.start_of_line(first), end

    def _line(self, line: int) -> str:
        return self.text[self.start_of_line(line) : self.start_of_line(line + 1)]

    def arguments(self, call: ast.Call) -> "Bracket":
        """Return the arguments of a call."""
        opening = re.compile(r"[\s)]*\(").match(self.text, self.span(call.func)[1])
        assert opening is not None
        spans = [self.span(each) for each in call.args] + [self.span(each) for each in call.keywords]
        return Bracket(self, opening.end(), self.span(call)[1] - 1, sorted(spans))

    def parameters(self, function: ast.FunctionDef) -> "Bracket":
        """Return the parameters of a function."""
        opening = re.compile(r"def\s+\w+\s*\(").match(self.text, self.span(function)[0])
        assert opening is not None
        spans = [(self.span(each)[0], self.span(default or each)[1]) for each, default in parameters_of(function)]
        spans += [self.span(star) for star in (function.args.vararg, function.args.kwarg) if star]
        end = max(spans)[1] if spans else opening.end()
        closing = re.compile(r"(?:[^)#]|#.*)*").match(self.text, end)
        assert closing is not None
        return Bracket(self, opening.end(), closing.end(), sorted(spans))

    def entries(self, node: ast.Dict) -> "Bracket":
        """Return the entries of a dictionary without `**`."""
        start, end = self.span(node)
        spans = [
            (self.span(key)[0], self.span(value)[1]) for key, value in zip(node.keys, node.values, strict=True) if key
        ]
        return Bracket(self, start + 1, end - 1, spans)


def parameters_of(function: ast.FunctionDef) -> list[tuple[ast.arg, ast.expr | None]]:
    """Return the parameters of a function, except those with stars, with their defaults."""
    given = function.args
    named = [*given.posonlyargs, *given.args]
    defaults = [*[None] * (len(named) - len(given.defaults)), *given.defaults]
    return [*zip(named, defaults, strict=True), *zip(given.kwonlyargs, given.kw_defaults, strict=True)]


_BLOCKS = (ast.FunctionDef, ast.If, ast.For, ast.With, ast.ClassDef)


@dataclass(frozen=True)
class Bracket:
    """A list in brackets. start, end: offsets of its inside; items: spans; hangs: whether all may share one line"""

    source: Source
    start: int
    end: int
    items: Sequence[Span]
    hangs: bool = True

    @property
    def texts(self) -> list[str]:
        return [self.source.text[start:end] for start, end in self.items]

    def added(self, item: str, index: int | None = None) -> Patch:
        """Return the patch that inserts an item, by default as the last one."""
        index = len(self.items) if index is None else index
        text = self.source.text
        if not self._has_rows or (
            index == len(self.items) and "#" in text[self.items[-1][1] : self.end].partition("\n")[0]
        ):
            if "#" in text[self.start : self.end] and "\n" in text[self.start : self.end]:
                place = self.items[index][0] if index < len(self.items) else self.items[-1][1]
                return Patch(place, place, f"{item}, " if index < len(self.items) else f", {item}")
            return Patch(self.start, self.end, self.laid_out([*self.texts[:index], item, *self.texts[index:]]))
        indent = text[self._line_start(self.items[0][0]) : self.items[0][0]]
        if index < len(self.items):
            place = self._line_start(self.items[index][0])
            return Patch(place, place, f"{indent}{item},{self.source.newline}")
        last = self.items[-1][1]
        comma = re.compile(r"\s*,").match(text, last)
        return Patch(
            last, comma.end() if comma else last, f",{self.source.newline}{indent}{item}{',' if comma else ''}"
        )

    def removed(self, index: int) -> Patch:
        """Return the patch that removes an item."""
        text, (start, end) = self.source.text, self.items[index]
        if len(self.items) == 1:
            return Patch(self.start, self.end, "")
        if self._has_rows:
            is_last = index == len(self.items) - 1
            following = self._line_start(self.end) if is_last else self._line_start(self.items[index + 1][0])
            if not is_last or not text[following : self.end].strip():
                return Patch(self._line_start(start), following, "")
        inside = text[self.start : self.end]
        if "\n" in inside and "#" not in inside:
            return Patch(self.start, self.end, self.laid_out([*self.texts[:index], *self.texts[index + 1 :]]))
        if index + 1 < len(self.items):
            return Patch(start, self.items[index + 1][0], "")
        return Patch(self.items[index - 1][1], end, "")

    def laid_out(self, texts: Sequence[str]) -> str:
        """Return the inside with these items: in one line, or below the line, or with a line for each item."""
        source, text = self.source, self.source.text
        head = text[self._line_start(self.start) : self.start]
        tail = re.match(r"[^\r\n]*", text[self.end :])
        return laid_out(texts, head, tail[0] if tail else "", source, hangs=self.hangs)

    @property
    def _has_rows(self) -> bool:
        """Whether each item begins a line."""
        text = self.source.text
        return bool(self.items) and all(not text[self._line_start(s) : s].strip() for s, _ in self.items)

    def _line_start(self, place: int) -> int:
        text = self.source.text
        return max(text.rfind("\n", 0, place), text.rfind("\r", 0, place)) + 1


def laid_out(texts: Sequence[str], head: str, tail: str, source: Source, *, hangs: bool = True) -> str:
    """Return the inside of brackets. head: of the line with the opening bracket; tail: from the closing one"""
    line, newline = ", ".join(texts), source.newline
    is_short = "\n" not in line
    if is_short and len(head) + len(line) + len(tail.partition("  #")[0]) <= source.width:
        return line
    indent = head[: len(head) - len(head.lstrip())]
    inner = f"{indent}{source.unit}"
    if hangs and is_short and len(inner) + len(line) <= source.width:
        return f"{newline}{inner}{line}{newline}{indent}"
    return newline + "".join(f"{inner}{each},{newline}" for each in texts) + indent
