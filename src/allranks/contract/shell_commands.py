"""Split a command template into the simple commands that a shell runs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

_PLACEHOLDER = re.compile(r"\$\{\{[^}]*\}\}")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_OPERATOR = re.compile(r"[();<>|&\n]+")
_PREFIXES = frozenset({"env", "exec", "nice", "nohup", "time"})
_SINGLE_QUOTED = re.compile(r"'[^']*'")
_EXPANSION = re.compile(r"(?<!\\)\$(?:\{(?P<braced>[A-Za-z_]\w*)(?P<default>:?[-=?+])?|(?P<bare>[A-Za-z_]\w*))")


@dataclass(frozen=True)
class SimpleCommand:
    """A program with its arguments.

    program:     as in the command, such as /usr/bin/python
    arguments:   the words behind it; a reference such as ``${{inputs.x}}`` is the word _
    assignments: ``NAME=value`` in front of the program
    """

    program: str
    arguments: tuple[str, ...] = ()
    assignments: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The program without its folder."""
        return PurePath(self.program).name


@dataclass(frozen=True)
class Expansion:
    """A variable that the shell replaces: ``$NAME`` or ``${NAME}``.

    has_default: whether the command says what to do if the variable is not set, as in ``${NAME:-0}``
    """

    name: str
    has_default: bool = False


def expansions(command: str) -> Iterator[Expansion]:
    """Yield the variables that the shell of a command replaces, in order. In single quotes it replaces none."""
    for match in _EXPANSION.finditer(_SINGLE_QUOTED.sub("", command)):
        yield Expansion(match["braced"] or match["bare"], bool(match["default"]))


def simple_commands(command: str) -> tuple[SimpleCommand, ...]:
    """Return the simple commands of a command template, in order; none if a quote is not closed.

    The lines of a here-document are not commands.
    """
    text = command.partition("<<")[0].replace("\\\n", " ").replace("$[[", " ").replace("]]", " ")
    lexer = shlex.shlex(_PLACEHOLDER.sub("_", text), posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.commenters, lexer.whitespace_split = " \t\r", "", True
    try:
        words = list(lexer)
    except ValueError:
        return ()
    return tuple(_simple_commands(words))


def _simple_commands(words: list[str]) -> Iterator[SimpleCommand]:
    simple: list[str] = []
    for word in (*words, "\n"):
        if not _OPERATOR.fullmatch(word):
            simple.append(word)
            continue
        assignments = []
        while simple and (_ASSIGNMENT.match(simple[0]) or simple[0] in _PREFIXES):
            if "=" in simple[0]:
                assignments.append(simple[0])
            simple = simple[1:]
        if simple:
            yield SimpleCommand(simple[0], tuple(simple[1:]), tuple(assignments))
        simple = []
