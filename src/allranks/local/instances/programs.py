"""A program that an agent starts, and the fork server that it is forked from, as plain data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from allranks.contract.expanded_command import PythonProgram


@dataclass(frozen=True)
class ForkServerSpec:
    """A fork server: a process that has imported modules, from which agents and their ranks are forked. Steps with
    equal specs share one.

    interpreter: its absolute path, as the ranks' PATH leads to it
    environment: the complete environment in which the modules are imported, sorted: the variables that all ranks share
    modules:     imported in this order. One that cannot be imported is left to the ranks.
    """

    interpreter: str
    environment: tuple[tuple[str, str], ...]
    modules: tuple[str, ...]


@dataclass(frozen=True)
class Program:
    """A process to start on an instance: its name, unique within the step, its arguments, its complete environment, its
    working directory, and its log.

    python: what the arguments run, if it can be forked from a fork server. The arguments start the same without one.
    serves: with a fork server, the program forks ranks for the clients of this Unix socket in its working directory,
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
        """Return the JSON form."""
        fields = {name: value for name, value in vars(self).items() if name != "python"}
        return fields if self.python is None else {**fields, "python": asdict(self.python)}
