"""Comments that ignore a rule: ``# allranks: ignore RULE, RULE``.

At the end of a line, the comment applies to that line; on its own line, to the next line with content; above all
content of the file, to the whole file. An error can only be ignored if azure-ai-ml accepts the file."""

import contextlib
import functools
import io
import re
import tokenize
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

import yaml

from allranks.errors import Location, Problem

_COMMENT = re.compile(r"#\s*allranks:\s*ignore\s+(?P<rules>[a-z0-9-]+(?:\s*,\s*[a-z0-9-]+)*)")
_SIZE = 1 << 20


Ignored: TypeAlias = Mapping[int, frozenset[str]]
"""The rules that the comments of a file ignore, by line. Those of line 0 are ignored in the whole file."""


def remaining(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems that no comment in their file ignores."""
    ignored_in = functools.cache(of_file)

    def is_ignored(problem: Problem) -> bool:
        at = Location.named_in(problem.where) if problem.ignorable else None
        return at is not None and not at.cell and ignores(ignored_in(at.file), problem.rule, at.line)

    return tuple(problem for problem in problems if not is_ignored(problem))


def ignores(ignored: Ignored, rule: str, line: int) -> bool:
    """Return whether a rule is ignored on a line. line: 0 if unknown"""
    return rule in ignored.get(0, ()) or rule in ignored.get(line, ())


def of_file(file: str) -> Ignored:
    """Return the rules that the comments of a file ignore; none if it cannot be read."""
    with contextlib.suppress(OSError, ValueError), open(file, encoding="utf-8") as opened:
        return read(opened.read(_SIZE), is_python=file.endswith(".py"))
    return {}


def read(text: str, *, is_python: bool = False) -> Ignored:
    if "allranks:" not in text:
        return {}
    lines = text.splitlines()
    is_comment = [not line.strip() or line.lstrip().startswith(("#", "---", "%")) for line in lines]
    first = next((number for number, comment in enumerate(is_comment, 1) if not comment), len(lines) + 1)
    ignored: dict[int, frozenset[str]] = {}
    for number in _comment_lines(text, is_python):
        match = _COMMENT.search(lines[number - 1])
        if match is None:
            continue
        target = 0 if number < first else number
        while 0 < target <= len(lines) and is_comment[target - 1]:
            target += 1
        ignored[target] = ignored.get(target, frozenset()) | set(re.split(r"\s*,\s*", match["rules"]))
    return ignored


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
