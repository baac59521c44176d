"""What an agent starts, as plain data: a program, the Python program that it is, and the starter that it is forked
from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class StarterSpec:
    """A starter: a process that has imported modules, from which agents and their ranks are forked. Steps with equal
    specs share one.

    interpreter: its absolute path, as the ranks' PATH leads to it
    environment: the complete environment in which the modules are imported, sorted: what the ranks have in common
    modules:     imported in this order. One that cannot be imported is left to the ranks.
    """

    interpreter: str
    environment: tuple[tuple[str, str], ...]
    modules: tuple[str, ...]


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


@dataclass(frozen=True)
class Program:
    """A process to start on an instance: its name, unique within the step, its arguments, its complete environment, its
    working directory, and its log.

    python: what the arguments run, if it can be forked from a starter. The arguments start the same without one.
    serves: with a starter, the program forks ranks for the clients of this Unix socket in its working directory,
            instead of running the arguments
    """

    name: str
    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: str
    log: str
    python: PythonProgram | None = None
    serves: str = ""

    def data(self) -> dict[str, Any]:
        """Return it for JSON."""
        fields = {name: value for name, value in vars(self).items() if name != "python"}
        return fields if self.python is None else {**fields, "python": asdict(self.python)}
