"""A command as its ranks start it: expanded exactly as bash does it, or not at all, and the Python program in it."""

from __future__ import annotations

import functools
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from allranks.contract.commands import PYTHON

_SET_BY_BASH = frozenset(
    {
        "_", "COMP_WORDBREAKS", "COMP_CWORD", "COMP_KEY", "COMP_LINE", "COMP_POINT", "COMP_TYPE", "COMP_WORDS",
        "COMPREPLY", "COPROC", "COLUMNS", "DIRSTACK", "EPOCHREALTIME", "EPOCHSECONDS", "EUID", "FUNCNAME", "GROUPS",
        "HISTCMD", "HISTFILE", "HISTSIZE", "HISTFILESIZE", "HOSTNAME", "HOSTTYPE", "IFS", "LINENO", "LINES", "MACHTYPE",
        "MAILCHECK", "MAPFILE", "OLDPWD", "OPTARG", "OPTERR", "OPTIND", "OSTYPE", "PATH", "PIPESTATUS",
        "POSIXLY_CORRECT", "PPID", "PS1", "PS2", "PS4", "PWD", "RANDOM", "READLINE_LINE", "REPLY", "SECONDS", "SHELL",
        "SHELLOPTS", "SHLVL", "SRANDOM", "TERM", "UID", "auto_resume", "histchars",
    }
)  # fmt: skip
"""Variables that bash sets itself, that configure bash, or that are read-only, besides those that begin with BASH."""

_INTERNAL = re.compile("[\x00\x01\x7f]")
"""Characters that bash cannot pass on, or uses internally."""

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_VARIABLE = rf"\$(?:\{{(?P<braced>{_NAME})\}}|(?P<bare>{_NAME})(?![A-Za-z0-9_]|\\\n))"
_TOKEN = re.compile(
    rf"""
    (?P<joined>\\\n)                               # the line continues
    | (?P<blank>[ \t]+)
    | '(?P<single>[^']*)'
    | "(?P<double>(?:[^"\\`]|\\.)*)"
    | \\(?P<escaped>.)
    | {_VARIABLE}
    | (?P<plain>[^\\\ \t'"$|&;()<>`{{\n*?\[]+)     # no operator, and no pattern for files
    """,
    re.VERBOSE | re.DOTALL,
)
_TOKEN_IN_QUOTES = re.compile(
    rf"""
    (?P<joined>\\\n)
    | \\(?P<escaped>[$`"\\])
    | {_VARIABLE}
    | (?P<plain>[^$]|\$(?=[^A-Za-z0-9_{{(\[$?!#*@\-'"`\\\n]|\Z))
    """,
    re.VERBOSE | re.DOTALL,
)


class _NotSimpleError(Exception):
    """The command needs a shell."""


class _Part(NamedTuple):
    """A part of a word: text, or the name of a variable."""

    text: str
    quoted: bool = False
    is_variable: bool = False


_Word = tuple[_Part, ...]


@dataclass(frozen=True)
class Expanded:
    """A simple command for one environment. assignments: the variables that it sets for the program only"""

    assignments: Mapping[str, str]
    words: tuple[str, ...]


def expand(text: str, environment: Mapping[str, str]) -> Expanded | None:
    """Return the simple command that a text consists of, with the variables of an environment, as bash expands it.

    Only words, quotes and variables of the environment are read. Return None for everything else, such as a pipe, a
    redirection or a glob, and if bash might look for files in the value of a variable.
    """
    try:
        assignments, words = _parsed(text)
        values = {name: "".join(_value(part, environment) for part in value) for name, value in assignments}
        fields = tuple(field for word in words for field in _fields(word, environment))
    except _NotSimpleError:
        return None
    return Expanded(values, fields) if fields else None


@functools.lru_cache(maxsize=1024)
def _parsed(text: str) -> tuple[Sequence[tuple[str, _Word]], Sequence[_Word]]:
    """Return the assignments and the words of a simple command. Raise _NotSimpleError if it is not one."""
    words = list(_words(text))
    assignments = []
    while words and (assignment := _assignment(words[0])):
        assignments.append(assignment)
        words = words[1:]
    names = {name for name, _ in assignments}
    values = [part.text for _, value in assignments for part in value if part.is_variable]
    # The order in which bash assigns and expands is not worth imitating.
    if not words or len(names) < len(assignments) or names.intersection(values) or any(map(_is_bash, names)):
        raise _NotSimpleError
    return assignments, words


def _words(text: str) -> Iterator[_Word]:
    text = text.strip(" \t\n")
    # The end of a file escapes nothing.
    if _INTERNAL.search(text) or (len(text) - len(text.rstrip("\\"))) % 2:
        raise _NotSimpleError
    word: list[_Part] = []
    for kind, token in (*_tokens(_TOKEN, text), ("blank", "")):
        if kind == "blank":
            if word:
                yield tuple(word)
            word = []
        elif kind == "double":
            inner = _tokens(_TOKEN_IN_QUOTES, token)
            word += [_Part("", quoted=True), *(_part(*each, quoted=True) for each in inner if each[0] != "joined")]
        elif kind != "joined":
            before = word[-1].text[-1:] if word else ""
            if kind == "plain" and _may_be_comment_or_home(before, token, is_first=not word):
                raise _NotSimpleError
            word.append(_part(kind, token, quoted=kind in ("single", "escaped")))


def _tokens(pattern: re.Pattern[str], text: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of each token."""
    position = 0
    while position < len(text):
        match = pattern.match(text, position)
        if match is None or match.lastgroup is None:
            raise _NotSimpleError
        yield match.lastgroup, match[match.lastgroup]
        position = match.end()


def _part(kind: str, text: str, *, quoted: bool) -> _Part:
    is_variable = kind in ("braced", "bare")
    if is_variable and _is_bash(text):
        raise _NotSimpleError
    return _Part(text, quoted, is_variable)


def _may_be_comment_or_home(before: str, text: str, *, is_first: bool) -> bool:
    """Return whether bash may not read a text literally. before: the character before it in its word"""
    return (is_first and text[0] == "#") or (not before and text[0] == "~") or bool(re.search("[=:]~", before + text))


def _assignment(word: _Word) -> tuple[str, _Word] | None:
    """Split an assignment into its name and value."""
    name = ""
    for number, part in enumerate(word):
        if part.quoted or part.is_variable:
            return None
        literal, equals, rest = part.text.partition("=")
        name += literal
        if equals:
            value = (_Part(rest), *word[number + 1 :])
            return (name, value) if re.fullmatch(_NAME, name) else None
    return None


def _fields(word: _Word, environment: Mapping[str, str]) -> list[str]:
    """Expand a word into fields: none, one, or several."""
    fields: list[str] = []
    current: str | None = None
    for part in word:
        value = _value(part, environment)
        if not part.is_variable or part.quoted:
            current = (current or "") + value
            continue
        if set("*?[\\").intersection(value):
            raise _NotSimpleError
        for number, piece in enumerate(re.split(r"[ \t\n]+", value)):
            if number and current is not None:
                fields.append(current)
                current = None
            if piece:
                current = (current or "") + piece
    return fields if current is None else [*fields, current]


def _value(part: _Part, environment: Mapping[str, str]) -> str:
    value = environment.get(part.text, "") if part.is_variable else part.text
    if _INTERNAL.search(value):
        raise _NotSimpleError
    return value


def _is_bash(name: str) -> bool:
    return name in _SET_BY_BASH or name.startswith("BASH")


_CHANGES_BASH = ("BASH_ENV", "BASHOPTS", "SHELLOPTS", "POSIXLY_CORRECT", "BASH_COMPAT", "BASH_XTRACEFD")


@dataclass(frozen=True)
class PythonProgram:
    """What a rank runs in Python: a script or a module.

    arguments:       sys.argv[1:]
    script:          its path as the command has it, relative to the rank's working directory: `python SCRIPT`
    module:          its name: `python -m MODULE`
    variables:       assigned by the command before the program
    executable_name: the interpreter as the command has it, for sys.orig_argv
    options:         the interpreter's options in the command, for sys.orig_argv; -u only
    """

    arguments: tuple[str, ...]
    script: str = ""
    module: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    executable_name: str = "python"
    options: tuple[str, ...] = ()


def python_program(
    shell: str, command: str, environment: Mapping[str, str], folder: str, interpreter: Path
) -> PythonProgram | None:
    """Return the Python program that a command consists of, if it can be started without the shell; else None.

    shell:       that runs the command. Only the words of bash are known, which replaces itself by the program.
    environment: of the rank
    folder:      the rank's working directory
    interpreter: of the step's environment. A program of another interpreter is not recognized.
    """
    if os.path.basename(shell) != "bash" or any(
        name in _CHANGES_BASH or name.startswith("BASH_FUNC_") for name in environment
    ):
        return None
    expanded = expand(command, environment)
    if expanded is None:
        return None
    assignments, words, search_path = dict(expanded.assignments), expanded.words, environment.get("PATH")
    if words[0] in ("env", "exec"):
        if words[0] == "env":  # $_ is the program that bash itself starts
            assignments["_"] = shutil.which("env", path=search_path) or ""
        assigned, words = _after_prefix(words)
        assignments |= assigned
    if not words or "PATH" in assignments:
        return None
    path = words[0] if "/" in words[0] else shutil.which(words[0], path=search_path)
    if path is None or (not os.path.isabs(path) and "/" not in words[0]):
        return None
    if _is_interpreter(path, interpreter):
        return _of_interpreter(words, assignments, folder)
    shebang = _shebang(os.path.join(folder, path), search_path)
    if shebang and _is_interpreter(shebang[1], interpreter) and os.access(os.path.join(folder, path), os.X_OK):
        return PythonProgram(words[1:], script=path, variables={"_": path, **assignments}, executable_name=shebang[0])
    return None


def _of_interpreter(words: Sequence[str], variables: Mapping[str, str], folder: str) -> PythonProgram | None:
    """Return the program of a command such as `python -u train.py --epochs 3`."""
    name, *arguments = words
    options: tuple[str, ...] = ()
    while arguments[:1] == ["-u"]:
        options = (*options, arguments.pop(0))
    if arguments[:1] == ["-m"] and len(arguments) > 1:
        return PythonProgram(tuple(arguments[2:]), "", arguments[1], variables, name, options)
    # A folder, an archive or a compiled file runs in other ways; other options change the interpreter itself.
    script = arguments[0] if arguments else ""
    if not script.endswith(".py") or script.startswith("-") or not os.path.isfile(os.path.join(folder, script)):
        return None
    return PythonProgram(tuple(arguments[1:]), script, "", variables, name, options)


def _after_prefix(words: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the assignments of `env`, and the words after `env` or `exec`; no words if it has options."""
    prefix, *rest = words
    assignments: dict[str, str] = {}
    while prefix == "env" and rest and "=" in rest[0]:
        name, _, value = rest.pop(0).partition("=")
        assignments[name] = value
    return assignments, () if rest and rest[0].startswith("-") else tuple(rest)


def _is_interpreter(path: str, interpreter: Path) -> bool:
    """Return whether a program is the interpreter, under any of its names in the environment."""
    is_python = PYTHON.fullmatch(os.path.basename(path)) is not None
    same_folder = os.path.dirname(path) == str(interpreter.parent)
    return is_python and same_folder and os.path.realpath(path) == os.path.realpath(interpreter)


def _shebang(path: str, search_path: str | None) -> tuple[str, str] | None:
    """Return the interpreter in a script's first line: argv[0] and its path, or None."""
    try:
        with open(path, "rb") as file:
            line = file.readline(256)
    except OSError:
        return None
    if not line.startswith(b"#!") or not line.endswith(b"\n"):
        return None
    words = os.fsdecode(line[2:]).split()
    if len(words) == 1:
        return words[0], words[0]
    if len(words) == 2 and words[0] in ("/usr/bin/env", "/bin/env"):
        found = shutil.which(words[1], path=search_path)
        return (words[1], found) if found else None
    return None
