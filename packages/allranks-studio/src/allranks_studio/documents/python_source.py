"""The text of a Python file with its syntax tree, and lists in brackets that grow and shrink in the file's style."""

import ast
import json
import re
from collections.abc import Sequence
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
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line, found = getattr(error, "lineno", None) or 1, getattr(error, "msg", error)
            raise InputError(Problem(f"line {line}", f"it is not Python: {found}", "Python")) from None
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
        """The indentation of a block: that of the first function."""
        found = re.search(r"^(?:def |\)).*:[ \t]*\r?\n([ \t]+)", self.text, re.MULTILINE)
        return found[1] if found else "    "

    @cached_property
    def taken(self) -> set[str]:
        """The names of the file's functions, imports and variables."""
        names = (getattr(node, key, None) for node in ast.walk(self.tree) for key in ("id", "name", "asname"))
        return {name for name in names if isinstance(name, str)}

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
        while first > 1 and self.text.startswith(f"{before}#", self.start_of_line(first - 1)):
            first -= 1
        return self.start_of_line(first), end

    def indent(self, statement: ast.stmt) -> str:
        return self.text[self.start_of_line(statement.lineno) : self.span(statement)[0]]

    def insertion(self, place: int, beside: ast.stmt, code: str) -> Patch:
        """Return the patch that inserts a statement at the start of a line. beside: one with the same indentation"""
        before = "" if self.text[:place].endswith(("\n", "\r")) else self.newline
        return Patch(place, place, f"{before}{self.indent(beside)}{code}{self.newline}")

    def above(self, place: int) -> int:
        """Return the start of the blank lines above the line that starts at a place."""
        return self.text.find("\n", len(self.text[:place].rstrip()), place) + 1 or place

    def removal(self, statement: ast.stmt) -> Patch:
        """Return the patch that removes a statement, the comments above it, and blank lines that would be left over."""
        start, end = self.block(statement)
        following = len(self.text) - len(self.text[end:].lstrip())
        above, below = self.above(start), max(end, self.text.rfind("\n", end, following) + 1)
        is_first = self.text[:start].rstrip().endswith(":")
        if below < len(self.text) and (is_first or start - above > below - end):
            return Patch(start, below, "")
        return Patch(above, end, "")

    def arguments(self, call: ast.Call) -> "Bracket":
        """Return the arguments of a call."""
        start = self.text.index("(", self.span(call.func)[1]) + 1
        spans = [*map(self.span, call.args), *map(self.span, call.keywords)]
        return Bracket(self, start, self.span(call)[1] - 1, sorted(spans))

    def parameters(self, function: ast.FunctionDef) -> "Bracket":
        """Return the parameters of a function."""
        start = self.text.index("(", self.span(function)[0]) + 1
        spans = [(self.span(each)[0], self.span(default or each)[1]) for each, default in parameters_of(function)]
        spans += [self.span(star) for star in (function.args.vararg, function.args.kwarg) if star]
        following = re.compile(r"\)|#.*").finditer(self.text, max(spans, default=(start, start))[1])
        end = next(each.start() for each in following if each[0] == ")")
        return Bracket(self, start, end, sorted(spans))

    def entries(self, node: ast.Dict) -> "Bracket":
        """Return the entries of a dictionary, except those with stars."""
        start, end = self.span(node)
        entries = zip(node.keys, node.values, strict=True)
        spans = [(self.span(key)[0], self.span(value)[1]) for key, value in entries if key]
        return Bracket(self, start + 1, end - 1, spans)


def parameters_of(function: ast.FunctionDef) -> list[tuple[ast.arg, ast.expr | None]]:
    """Return the parameters of a function, except those with stars, with their defaults."""
    given = function.args
    named = [*given.posonlyargs, *given.args]
    defaults = [*[None] * (len(named) - len(given.defaults)), *given.defaults]
    return [*zip(named, defaults, strict=True), *zip(given.kwonlyargs, given.kw_defaults, strict=True)]


@dataclass(frozen=True)
class Bracket:
    """A list in brackets. start, end: offsets of its inside; items: spans"""

    source: Source
    start: int
    end: int
    items: Sequence[Span]

    def added(self, item: str, index: int | None = None) -> Patch:
        """Return the patch that inserts an item, by default as the last one."""
        count = len(self.items)
        index = count if index is None else index
        if self._is_free:
            return self.laid_out([*self.texts[:index], item, *self.texts[index:]])
        if not self.items:
            return Patch(self.start, self.start, item)
        text, (start, last) = self.source.text, self.items[min(index, count - 1)]
        line = self._line_start(start)
        row = f"{self.source.newline}{text[line : len(text) - len(text[line:].lstrip())]}"
        if index < count:
            return Patch(start, start, f"{item},{row if self._has_rows else ' '}")
        rest = text[last : self.end].partition("\n")[0].rstrip()  # a comma and a comment
        comma = "," if rest.lstrip().startswith(",") else ""
        separator = row if self._has_rows or "#" in rest else " "
        return Patch(last, last + len(rest), f"{'' if comma else ','}{rest}{separator}{item}{comma}")

    def removed(self, index: int) -> Patch:
        """Return the patch that removes an item."""
        start, end = self.items[index]
        if len(self.items) == 1:
            return Patch(self.start, self.end, "")
        if self._is_free:
            return self.laid_out([*self.texts[:index], *self.texts[index + 1 :]])
        if index + 1 < len(self.items):
            return Patch(start, self.items[index + 1][0], "")
        closing = self._line_start(self.end)
        if self._has_rows and closing > end:
            return Patch(self._line_start(start), closing, "")
        return Patch(self.items[index - 1][1], end, "")

    def laid_out(self, texts: Sequence[str]) -> Patch:
        """Return the patch that replaces all items."""
        text = self.source.text
        tail = text[self.end :].partition("\n")[0].partition("#")[0].rstrip()
        inside = laid_out(texts, text[self._line_start(self.start) : self.start], tail, self.source)
        return Patch(self.start, self.end, inside)

    @property
    def texts(self) -> list[str]:
        return [self.source.text[start:end] for start, end in self.items]

    @property
    def _is_free(self) -> bool:
        """Whether the items can be laid out anew: there is nothing besides them, and not each begins a line."""
        besides = applied(self.source.text, [Patch(*item, "") for item in self.items], self.start, self.end)
        return not self._has_rows and not besides.strip(", \t\r\n")

    @property
    def _has_rows(self) -> bool:
        """Whether each item begins a line."""
        text = self.source.text
        return bool(self.items) and all(not text[self._line_start(s) : s].strip() for s, _ in self.items)

    def _line_start(self, place: int) -> int:
        return self.source.text.rfind("\n", 0, place) + 1


def laid_out(texts: Sequence[str], head: str, tail: str, source: Source) -> str:
    """Return the inside of brackets: in one line if it fits, else with a line for each item.

    head: of the line with the opening bracket; tail: from the closing one
    """
    line = ", ".join(texts)
    if "\n" not in line and len(head) + len(line) + len(tail) <= source.width:
        return line
    indent = head[: len(head) - len(head.lstrip())]
    rows = "".join(f"{indent}{source.unit}{each},{source.newline}" for each in texts)
    return f"{source.newline}{rows}{indent}"
