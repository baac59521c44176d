"""Find the programs that a command starts. The command is a template for a shell, and is not executed."""

import functools
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import dropwhile, pairwise
from os.path import join, normpath
from pathlib import PurePath

from allranks.contract import launchers

PIP_INSTALL = re.compile(r"\bpip[\d.]* install\b")
"""Matches a command that installs packages."""

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
    arguments:   the words after it; a reference such as ``${{inputs.x}}`` is the word _
    assignments: ``NAME=value`` in front of the program
    """

    program: str
    arguments: tuple[str, ...] = ()
    assignments: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The program without its folder."""
        return PurePath(self.program).name

    @property
    def assigned(self) -> Mapping[str, str]:
        """The variables that are assigned for the program, or exported."""
        texts = (*self.assignments, *(self.arguments if self.name == "export" else ()))
        return dict(text.split("=", 1) for text in texts if "=" in text)


def without_placeholders(command: str, replacement: str) -> str:
    """Return a command template with each reference such as ``${{inputs.x}}`` replaced, and without the brackets of its
    optional parts."""
    return _PLACEHOLDER.sub(replacement, command.replace("$[[", " ").replace("]]", " "))


def expansions(command: str, *, with_default: bool) -> list[str]:
    """Return the variables that the shell of a command expands, in order. It expands none in single quotes.

    with_default: whether to include variables that may be unset, as in ``${NAME:-0}``
    """
    found = _EXPANSION.finditer(_SINGLE_QUOTED.sub("", command))
    return [each["braced"] or each["bare"] for each in found if with_default or not each["default"]]


@functools.lru_cache(256)  # the steps of a pipeline share commands, and a check asks several times
def simple_commands(command: str) -> tuple[SimpleCommand, ...]:
    """Return the simple commands of a command template, in order; none if a quote is not closed.

    The lines of a here-document are not commands.
    """
    text = without_placeholders(command.partition("<<")[0].replace("\\\n", " "), "_")
    lexer = shlex.shlex(text, posix=True, punctuation_chars="();<>|&\n")
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


_PATH = "PYTHONPATH"
PYTHON = re.compile(r"python(3(\.\d+)?)?")
_OPTIONS_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
CHANGES = frozenset(
    {".", "cd", "export", "pushd", "source"}
    | {"apt", "apt-get", "conda", "mamba", "micromamba", "pip", "pip3", "poetry", "uv"}
)
"""Programs that change the module search path. The effect of `cd` and `export` is known if their arguments have no
expansions."""
_WRITTEN = re.compile(r"(?!_$)[\w.][\w./-]*")
_EARLIER = re.compile(r"\$(?:PYTHONPATH\b|\{PYTHONPATH(?::[-+][^}]*)?\})")
_BLOCKS = frozenset({"{", "do", "else", "then"})

_PROGRAMS = {
    "accelerate": "accelerate.commands.launch",
    "deepspeed": "deepspeed",
    "mldesigner": "mldesigner",
    "torchrun": "torch.distributed.run",
}
"""Programs that start a Python script, with the module that they run."""

_MPI = frozenset(name for name, launch in launchers.LAUNCHERS.items() if launch == "mpi")
_LAUNCHERS = frozenset({*launchers.MODULES, "allranks.runtime", "mpi4py"})
"""Modules that start a Python script when they are run with ``python -m``."""

_MAY_START = re.compile("|".join(("python", *_PROGRAMS)))


@dataclass(frozen=True)
class Start:
    """A Python program that a command starts.

    program:     as in the command, such as python or torchrun
    script:      the path of a file; "" if there is none
    module:      the module that ``python -m``, or the program itself, imports; "" if there is none
    function:    the mldesigner component that is executed; "" if there is none
    python_path: the folders that an assignment PYTHONPATH=... adds
    folder:      the working directory, to which the paths are relative, within that of the command
    """

    program: str
    script: str = ""
    module: str = ""
    function: str = ""
    python_path: tuple[str, ...] = ()
    folder: str = ""


def starts(command: str) -> tuple[Start, ...]:
    """Return the Python programs that a command starts, as far as they are known.

    None are known for a command that installs something or changes its own environment.
    """
    # Most of thousands of steps run other programs, and a search is faster than the lexer.
    return _starts(command) if _MAY_START.search(command) else ()


@functools.lru_cache(maxsize=4096)
def _starts(command: str) -> tuple[Start, ...]:
    found: list[Start] = []
    folder, exported = "", ""
    for simple in simple_commands(command):
        arguments = simple.arguments
        if simple.name == "cd" and "(" not in command and len(arguments) == 1 and _WRITTEN.fullmatch(arguments[0]):
            folder = normpath(join(folder, arguments[0]))
            continue
        is_export = simple.name == "export" and "(" not in command
        changes = (simple.name, *(arguments if simple.name in _BLOCKS else ()))
        if (not is_export and not CHANGES.isdisjoint(changes)) or arguments[:2] == ("-m", "pip"):
            return ()
        added = _EARLIER.sub(exported, simple.assigned.get(_PATH, exported))
        if "$" in added:
            return ()
        exported = added if is_export else exported
        python_path = tuple(filter(None, added.split(":")))
        found += (replace(each, folder=folder) for each in _started(simple.program, list(arguments), python_path))
    return tuple(found)


def _started(program: str, arguments: list[str], python_path: tuple[str, ...]) -> Iterator[Start]:
    name = PurePath(program).name
    if name == "mldesigner":
        options = dict(pairwise(arguments))
        yield Start(program, options.get("--source", ""), name, options.get("--name", ""), python_path)
    elif name in _MPI:
        words = list(dropwhile(lambda word: not PYTHON.fullmatch(PurePath(word).name), arguments))
        if words:
            yield from _started(words[0], words[1:], python_path)
    elif name in _PROGRAMS:
        yield Start(program, _script(arguments), _PROGRAMS[name], python_path=python_path)
    elif PYTHON.fullmatch(name):
        while arguments and arguments[0].startswith("-") and arguments[0] not in ("-m", "-c", "-"):
            arguments = arguments[2 if arguments[0] in _OPTIONS_WITH_VALUE else 1 :]
        if arguments[:1] == ["-m"] and len(arguments) > 1:
            module = arguments[1]
            script = _script(arguments[2:]) if module in _LAUNCHERS else ""
            yield Start(program, script, module, python_path=python_path)
        elif arguments and arguments[0] not in ("-c", "-"):
            yield Start(program, arguments[0], python_path=python_path)


def _script(arguments: list[str]) -> str:
    return next((argument for argument in arguments if argument.endswith(".py")), "")
