"""The Python programs that a shell command starts."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePath

from allranks.contract import launchers
from allranks.contract.shell_commands import simple_commands

_PATH = "PYTHONPATH"
_PYTHON = re.compile(r"python(3(\.\d+)?)?")
_OPTIONS_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_INSTALLERS = frozenset({"apt", "apt-get", "conda", "mamba", "micromamba", "pip", "pip3", "poetry", "uv"})
_CHANGES = frozenset({".", "cd", "export", "pushd", "source"}) | _INSTALLERS
"""Programs after which the rest of a command finds other modules."""

PROGRAMS = {"accelerate": "accelerate", "deepspeed": "deepspeed", "mldesigner": "mldesigner", "torchrun": "torch"}
"""Programs that start a Python script, with the module that they belong to."""

_LAUNCHERS = frozenset({*launchers.MODULES, "allranks.runtime", "mpi4py"})
"""Modules that start a Python script when they are run with ``python -m``."""


@dataclass(frozen=True)
class Start:
    """A Python program that a command starts.

    program:     as in the command, such as python or torchrun
    script:      the path of a file, relative to the working directory; "" if there is none
    module:      the module that ``python -m``, or the program itself, imports; "" if there is none
    function:    the mldesigner component that is executed; "" if there is none
    python_path: the folders of an assignment PYTHONPATH=... in front of the program
    """

    program: str
    script: str = ""
    module: str = ""
    function: str = ""
    python_path: tuple[str, ...] = ()


_MAY_START = re.compile("|".join(("python", *PROGRAMS)))


def starts(command: str) -> tuple[Start, ...]:
    """Return the Python programs that a command starts, as far as they can be known.

    A command that installs something or changes its own environment starts none that is known.
    """
    # Of thousands of steps, most run other programs: a search is quicker than the lexer.
    return _starts(command) if _MAY_START.search(command) else ()


@functools.lru_cache(maxsize=4096)
def _starts(command: str) -> tuple[Start, ...]:
    found: list[Start] = []
    for simple in simple_commands(command):
        if simple.name in _CHANGES or simple.arguments[:2] == ("-m", "pip"):
            return ()
        values = [value for name, _, value in (text.partition("=") for text in simple.assignments) if name == _PATH]
        python_path = tuple(values[-1].split(":")) if values else ()
        found += _started(simple.program, list(simple.arguments), python_path)
    return tuple(found)


def start_of(script: str, module: str, arguments: Sequence[str]) -> Start:
    """Return the start of one Python program.

    script: its path, or that of a console script such as torchrun; "" for `python -m`
    module: of `python -m`
    """
    if module:
        program, words = "python", ["-m", module, *arguments]
    elif PurePath(script).name in PROGRAMS:
        program, words = script, [*arguments]
    else:
        program, words = "python", [script, *arguments]
    return next(_started(program, words, ()))


def _started(program: str, arguments: list[str], python_path: tuple[str, ...]) -> Iterator[Start]:
    name = PurePath(program).name
    if name == "mldesigner":
        options = dict(pairwise(arguments))
        yield Start(program, options.get("--source", ""), name, options.get("--name", ""), python_path)
    elif name in PROGRAMS:
        yield Start(program, _script(arguments), PROGRAMS[name], python_path=python_path)
    elif _PYTHON.fullmatch(name):
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
