"""Recognize the Python program that a step's command consists of."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from allranks.local.forkserver.starts import shell_words
from allranks.local.instances.programs import PythonProgram

BASH = "bash"
"""The shell whose words are known, and which replaces itself by the program of a simple command."""

_PYTHON = re.compile(r"python(3(\.\d+)?)?")
_FUNCTIONS = "BASH_FUNC_"
_CHANGES_BASH = ("BASH_ENV", "BASHOPTS", "SHELLOPTS", "POSIXLY_CORRECT", "BASH_COMPAT", "BASH_XTRACEFD")
_UNBUFFERED = "-u"


def python_program(
    shell: str, command: str, environment: Mapping[str, str], folder: str, interpreter: Path
) -> PythonProgram | None:
    """Return the Python program that a command consists of, if it can be started without the shell; else None.

    shell:       that runs the command
    environment: of the rank
    folder:      the rank's working directory
    interpreter: of the step's environment. A program of another interpreter is not recognized.
    """
    if os.path.basename(shell) != BASH or _changes_bash(environment):
        return None
    simple = shell_words.parse(command)
    expanded = None if simple is None else shell_words.expand(simple, environment)
    if expanded is None:
        return None
    assignments, words = dict(expanded.assignments), expanded.words
    if words[0] in ("env", "exec"):
        if words[0] == "env":  # $_ is the program that bash itself starts
            assignments["_"] = shutil.which("env", path=environment.get("PATH")) or ""
        assigned, words = _after_prefix(words)
        assignments |= assigned
    if not words or "PATH" in assignments:
        return None
    path = words[0] if "/" in words[0] else shutil.which(words[0], path=environment.get("PATH"))
    if path is None or (not os.path.isabs(path) and "/" not in words[0]):
        return None
    if _is_interpreter(path, interpreter):
        return _of_interpreter(words, assignments, folder)
    shebang = _shebang(os.path.join(folder, path), environment.get("PATH"))
    if shebang and _is_interpreter(shebang[1], interpreter) and os.access(os.path.join(folder, path), os.X_OK):
        return PythonProgram(words[1:], script=path, variables={"_": path, **assignments}, executable_name=shebang[0])
    return None


def _of_interpreter(words: Sequence[str], variables: Mapping[str, str], folder: str) -> PythonProgram | None:
    """Return the program of a command such as `python -u train.py --epochs 3`."""
    name, *arguments = words
    options: tuple[str, ...] = ()
    while arguments[:1] == [_UNBUFFERED]:
        options = (*options, arguments.pop(0))
    if arguments[:1] == ["-m"] and len(arguments) > 1:
        return PythonProgram(
            tuple(arguments[2:]), module=arguments[1], variables=variables, executable_name=name, options=options
        )
    # A folder, an archive or a compiled file runs in other ways; other options change the interpreter itself.
    script = arguments[0] if arguments else ""
    if not script.endswith(".py") or script.startswith("-") or not os.path.isfile(os.path.join(folder, script)):
        return None
    return PythonProgram(
        tuple(arguments[1:]), script=script, variables=variables, executable_name=name, options=options
    )


def _after_prefix(words: Sequence[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the assignments of `env`, and the words after `env` or `exec`; no words if it has options."""
    prefix, *rest = words
    assignments: dict[str, str] = {}
    while prefix == "env" and rest and "=" in rest[0]:
        name, _, value = rest.pop(0).partition("=")
        assignments[name] = value
    return assignments, () if rest and rest[0].startswith("-") else tuple(rest)


def _changes_bash(environment: Mapping[str, str]) -> bool:
    return any(name in _CHANGES_BASH or name.startswith(_FUNCTIONS) for name in environment)


def _is_interpreter(path: str, interpreter: Path) -> bool:
    """Return whether a program is the interpreter, under any of the names that its environment has for it."""
    is_python = _PYTHON.fullmatch(os.path.basename(path)) is not None
    same_folder = os.path.dirname(path) == str(interpreter.parent)
    return is_python and same_folder and os.path.realpath(path) == os.path.realpath(interpreter)


def _shebang(path: str, search_path: str | None) -> tuple[str, str] | None:
    """Return the interpreter of a script as its first line leads to it: argv[0], and its path. None without one."""
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
