"""The words of a simple shell command, expanded as bash expands them.

Only commands without side effects and without surprises are read: words, quotes, and variables of the environment.
Everything else, such as a pipe, a redirection or a glob, is left to bash.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass

SET_BY_BASH = frozenset(
    [
        "_",
        "BASH",
        "BASHOPTS",
        "BASHPID",
        "COMP_WORDBREAKS",
        "COMP_CWORD",
        "COMP_KEY",
        "COMP_LINE",
        "COMP_POINT",
        "COMP_TYPE",
        "COMP_WORDS",
        "COMPREPLY",
        "COPROC",
        "COLUMNS",
        "DIRSTACK",
        "EPOCHREALTIME",
        "EPOCHSECONDS",
        "EUID",
        "FUNCNAME",
        "GROUPS",
        "HISTCMD",
        "HISTFILE",
        "HISTSIZE",
        "HISTFILESIZE",
        "HOSTNAME",
        "HOSTTYPE",
        "IFS",
        "LINENO",
        "LINES",
        "MACHTYPE",
        "MAILCHECK",
        "MAPFILE",
        "OLDPWD",
        "OPTARG",
        "OPTERR",
        "OPTIND",
        "OSTYPE",
        "PATH",
        "PIPESTATUS",
        "POSIXLY_CORRECT",
        "PPID",
        "PS1",
        "PS2",
        "PS4",
        "PWD",
        "RANDOM",
        "READLINE_LINE",
        "REPLY",
        "SECONDS",
        "SHELL",
        "SHELLOPTS",
        "SHLVL",
        "SRANDOM",
        "TERM",
        "UID",
        "auto_resume",
        "histchars",
    ]
)
"""Variables that bash sets itself, that act on bash, or that it may not change. Those that begin with BASH are some,
too."""

_BLANKS = " \t"
_SPACES = " \t\n"
_OPERATORS = frozenset("|&;()<>`{\n")
_GLOBS = frozenset("*?[")
_ESCAPED_IN_QUOTES = frozenset('$`"\\')
_INTERNAL = re.compile("[\x00\x01\x7f]")
"""Characters that bash cannot pass on, or uses internally."""

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PLAIN_DOLLAR = re.compile(r"[^A-Za-z0-9_{(\[$?!#*@\-'\"`\\\n]")
"""A character after a dollar sign that leaves the dollar sign as it is."""


class _NotSimpleError(Exception):
    """The command needs a shell."""


@dataclass(frozen=True)
class _Part:
    """A part of a word: text, or the name of a variable."""

    text: str
    is_variable: bool
    quoted: bool


Word = tuple[_Part, ...]


@dataclass(frozen=True)
class SimpleCommand:
    """A simple command. assignments: in front of the program, by name; the words include the program"""

    assignments: tuple[tuple[str, Word], ...]
    words: tuple[Word, ...]


@dataclass(frozen=True)
class Expanded:
    """A simple command for one environment. assignments: the variables that it sets for the program alone"""

    assignments: Mapping[str, str]
    words: tuple[str, ...]


@functools.lru_cache(maxsize=1024)
def parse(text: str) -> SimpleCommand | None:
    """Return the simple command that a text consists of; None if it consists of anything else, or might."""
    try:
        words = _words(text)
        assignments = []
        while words and (assignment := _assignment(words[0])):
            assignments.append(assignment)
            words = words[1:]
    except _NotSimpleError:
        return None
    names = {name for name, _ in assignments}
    values = [part.text for _, value in assignments for part in value if part.is_variable]
    # The order in which bash assigns and expands is not worth imitating.
    if not words or len(names) < len(assignments) or names.intersection(values) or any(map(_is_bash, names)):
        return None
    return SimpleCommand(tuple(assignments), tuple(words))


def expand(command: SimpleCommand, environment: Mapping[str, str]) -> Expanded | None:
    """Return the command with the variables of an environment; None if bash might look for files in it."""
    try:
        assignments = {
            name: "".join(_value(part, environment) if part.is_variable else part.text for part in value)
            for name, value in command.assignments
        }
        words = tuple(field for word in command.words for field in _fields(word, environment))
    except _NotSimpleError:
        return None
    return Expanded(assignments, words) if words else None


def _words(text: str) -> list[Word]:
    if _INTERNAL.search(text):
        raise _NotSimpleError
    text = text.strip(_SPACES)
    if (len(text) - len(text.rstrip("\\"))) % 2:  # the end of a file escapes nothing
        raise _NotSimpleError
    words: list[Word] = []
    position = 0
    while position < len(text):
        if text[position] in _BLANKS:
            position += 1
        elif text.startswith("\\\n", position):
            position += 2
        elif text[position] == "#":
            raise _NotSimpleError
        else:
            word, position = _word(text, position)
            words.append(word)
    return words


def _word(text: str, position: int) -> tuple[Word, int]:
    """Return the word that begins at a position, and the position after it."""
    parts: list[_Part] = []
    while position < len(text) and text[position] not in _BLANKS:
        character = text[position]
        if character in _OPERATORS or character in _GLOBS:
            raise _NotSimpleError
        if character == "~" and (not parts or parts[-1].text[-1:] in ("", "=", ":")):
            raise _NotSimpleError  # may be a home folder
        if character == "'":
            end = text.find("'", position + 1)
            if end < 0:
                raise _NotSimpleError
            parts.append(_Part(text[position + 1 : end], False, True))
            position = end + 1
        elif character == '"':
            quoted, position = _double_quoted(text, position + 1)
            parts += quoted
        elif character == "\\":
            if text[position + 1] != "\n":
                parts.append(_Part(text[position + 1], False, True))
            position += 2
        elif character == "$":
            part, position = _dollar(text, position, quoted=False)
            parts.append(part)
        else:
            parts.append(_Part(character, False, False))
            position += 1
    return tuple(parts), position


def _double_quoted(text: str, position: int) -> tuple[list[_Part], int]:
    """Return the parts of a quotation, and the position after it. position: after the quotation mark"""
    parts = [_Part("", False, True)]
    while position < len(text):
        character = text[position]
        if character == '"':
            return parts, position + 1
        if character == "`":
            break
        if character == "\\" and text[position + 1 : position + 2] == "\n":
            position += 2
        elif character == "\\" and text[position + 1 : position + 2] in _ESCAPED_IN_QUOTES:
            parts.append(_Part(text[position + 1], False, True))
            position += 2
        elif character == "$":
            part, position = _dollar(text, position, quoted=True)
            parts.append(part)
        else:
            parts.append(_Part(character, False, True))
            position += 1
    raise _NotSimpleError


def _dollar(text: str, position: int, *, quoted: bool) -> tuple[_Part, int]:
    """Return what a dollar sign begins, and the position after it."""
    position += 1
    rest = text[position : position + 1]
    # Beside a lone dollar sign without quotes, bash 5.2 does not split a variable.
    if quoted and (rest == '"' or _PLAIN_DOLLAR.match(rest)):
        return _Part("$", False, True), position
    braced = rest == "{"
    name = _NAME.match(text, position + braced)
    if name is None or _is_bash(name[0]):
        raise _NotSimpleError
    position = name.end()
    if braced:
        if text[position : position + 1] != "}":
            raise _NotSimpleError
        position += 1
    elif text.startswith("\\\n", position):
        raise _NotSimpleError  # the name may go on in the next line
    return _Part(name[0], True, quoted), position


def _assignment(word: Word) -> tuple[str, Word] | None:
    """Return the name and the value of a word that is an assignment."""
    literal = ""
    for number, part in enumerate(word):
        if part.quoted or part.is_variable:
            return None
        if part.text == "=":
            return (literal, word[number + 1 :]) if _NAME.fullmatch(literal) else None
        literal += part.text
    return None


def _fields(word: Word, environment: Mapping[str, str]) -> list[str]:
    """Return the fields that a word becomes: none, one, or several."""
    fields: list[str] = []
    current: str | None = None
    for part in word:
        if not part.is_variable or part.quoted:
            text = _value(part, environment) if part.is_variable else part.text
            current = text if current is None else current + text
            continue
        value = _value(part, environment)
        if _GLOBS.intersection(value) or "\\" in value:
            raise _NotSimpleError
        pieces = re.split(r"[ \t\n]+", value)
        for number, piece in enumerate(pieces):
            if number and current is not None:
                fields.append(current)
                current = None
            if piece:
                current = piece if current is None else current + piece
    return fields if current is None else [*fields, current]


def _value(part: _Part, environment: Mapping[str, str]) -> str:
    value = environment.get(part.text, "")
    if _INTERNAL.search(value):
        raise _NotSimpleError
    return value


def _is_bash(name: str) -> bool:
    return name in SET_BY_BASH or name.startswith("BASH")
