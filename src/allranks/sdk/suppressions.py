"""Comments that ignore a rule: ``# allranks: ignore RULE, RULE``.

At the end of a line, the comment applies to that line; on its own line, to the next line with content; above all
content of the file, to the whole file. An error can only be ignored if azure-ai-ml accepts the file."""

import contextlib
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import yaml

from allranks.errors import Problem

_COMMENT = re.compile(r"#\s*allranks:\s*ignore\s+(?P<rules>[a-z0-9-]+(?:\s*,\s*[a-z0-9-]+)*)")
_PLACE = re.compile(r"(?:.*\()?(?P<file>[^()]+?)(?::(?P<line>\d+))?\)?(?:, key .*)?")
_SIZE = 1 << 20


@dataclass(frozen=True)
class Comments:
    """The rules that the comments of a file ignore."""

    everywhere: frozenset[str] = frozenset()
    by_line: dict[int, frozenset[str]] = field(default_factory=dict)

    def ignore(self, rule: str, line: int | None) -> bool:
        """Return whether a rule is ignored on a line. line: None if unknown"""
        return rule in self.everywhere or (line is not None and rule in self.by_line.get(line, ()))


class Suppressions:
    """Comments that ignore findings, by file. Each file is read once."""

    def __init__(self) -> None:
        self._files: dict[str, Comments] = {}

    def remaining(self, problems: Iterable[Problem]) -> tuple[Problem, ...]:
        """Return the problems that no comment in their file ignores."""
        return tuple(problem for problem in problems if not self._is_ignored(problem))

    def of(self, file: str) -> Comments:
        """Return the comments of a file; none if it cannot be read."""
        if file not in self._files:
            self._files[file] = Comments()
            with contextlib.suppress(OSError, ValueError), open(file, encoding="utf-8") as opened:
                self._files[file] = read(opened.read(_SIZE), is_python=file.endswith(".py"))
        return self._files[file]

    def _is_ignored(self, problem: Problem) -> bool:
        match = _PLACE.fullmatch(problem.where) if problem.ignorable else None
        if match is None:
            return False
        return self.of(match["file"]).ignore(problem.rule, int(match["line"]) if match["line"] else None)


def read(text: str, *, is_python: bool = False) -> Comments:
    if "allranks:" not in text:
        return Comments()
    lines = text.splitlines()
    is_comment = [not line.strip() or line.lstrip().startswith(("#", "---", "%")) for line in lines]
    first = next((number for number, comment in enumerate(is_comment, 1) if not comment), len(lines) + 1)
    everywhere: set[str] = set()
    by_line: dict[int, frozenset[str]] = {}
    for number in _comment_lines(text, is_python):
        match = _COMMENT.search(lines[number - 1])
        if match is None:
            continue
        rules = frozenset(re.split(r"\s*,\s*", match["rules"]))
        if number < first:
            everywhere |= rules
            continue
        target = number
        while target <= len(lines) and is_comment[target - 1]:
            target += 1
        by_line[target] = by_line.get(target, frozenset()) | rules
    return Comments(frozenset(everywhere), by_line)


def _comment_lines(text: str, is_python: bool) -> Iterator[int]:
    """Yield the numbers of lines that may have a comment: not those inside of a string or a block of text."""
    if is_python:
        try:
            tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
        except (tokenize.TokenError, SyntaxError):
            return
        yield from (token.start[0] for token in tokens if token.type == tokenize.COMMENT)
        return
    scalars: set[int] = set()
    try:
        for token in yaml.scan(text):
            if isinstance(token, yaml.ScalarToken) and token.style in ("|", ">", "'", '"'):
                # A block begins on the line of its indicator, which may have a comment, and ends on the next line.
                start, end = token.start_mark, token.end_mark
                block = token.style in ("|", ">")
                scalars.update(range(start.line + (2 if block else 1), end.line + (1 if block else 2)))
                if not block and start.line == end.line:
                    scalars.discard(start.line + 1)
    except yaml.YAMLError:
        return
    yield from (number for number in range(1, len(text.splitlines()) + 1) if number not in scalars)
