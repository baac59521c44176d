"""The context that the readers of one script's jobs share."""

import itertools
import keyword
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allranks.errors import Level, Problem
from allranks_migrate.evaluation import Script
from allranks_migrate.operations import Made

_TAKEN = ("dsl", "here", "job", "pipeline")
"""Names that the pipeline uses itself."""

UNKNOWN = "its value is not in this file"


@dataclass(frozen=True)
class Context:
    """The context of one script. The collections are filled while the jobs are read.

    base:       the folder that the paths of a script are relative to
    folder:     the folder that is written
    found:      the constructs that are not converted, or not exactly, by line and name
    parameters: the inputs of the pipeline with their defaults; None: it has none
    jobs:       the name of each job, by the id of its object
    written:    the step and its output, for each object of v1 that a step writes to
    """

    script: Script
    base: Path
    folder: Path
    found: dict[tuple[int, str], Problem] = field(default_factory=dict)
    parameters: dict[str, Any] = field(default_factory=dict)
    jobs: dict[int, str] = field(default_factory=dict)
    written: dict[int, tuple[str, str]] = field(default_factory=dict)

    def report(self, line: int, what: str, why: str, fix: str, place: str = "") -> None:
        """Add a construct that a person must check, once per line. place: by default that of the line"""
        problem = Problem(place or self.script.place(line), f"{what}: {why}", "", fix, level=Level.WARNING)
        self.found.setdefault((line, what), problem)

    def findings(self) -> tuple[Problem, ...]:
        return tuple(self.found[key] for key in sorted(self.found))

    def text(self, value: Any, line: int, what: str, fix: str, otherwise: str = "") -> str:
        """Return a text or a path; otherwise report that it is unknown."""
        if isinstance(value, (str, Path)):
            return str(value)
        if value is not None:
            self.report(line, f"{what} {getattr(value, 'text', '')}".strip(), UNKNOWN, fix)
        return otherwise


def to_name(text: str, otherwise: str) -> str:
    """Return a text as the name of a component, an input or an output."""
    name = re.sub(r"\W+", "_", text.lower()).strip("_") or otherwise
    return f"_{name}" if name[0].isdigit() else f"{name}_" if keyword.iskeyword(name) or name in _TAKEN else name


def relative(path: Path, start: Path) -> str:
    return Path(os.path.relpath(path, start.absolute())).as_posix()


def unique(name: str, others: Collection[str]) -> str:
    """Return a name that the others do not have."""
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    return next(each for each in itertools.chain([name], numbered) if each not in others)


def as_list(value: Any) -> Sequence[Any]:
    """Return the items of a list, or a list with the value itself."""
    return value if isinstance(value, (list, tuple)) else () if value is None else (value,)


def pairs(value: Any) -> Sequence[tuple[Any, Any]]:
    """Return the keys and values of a dictionary; none for any other value."""
    return list(value.items()) if isinstance(value, Mapping) else ()


def whole(value: Any, default: int) -> int:
    """Return a whole number, or the default for any other value."""
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def of(made: Any, name: str, position: int | None = None) -> Any:
    """Return an argument or attribute of an object; None for any other value."""
    return made.get(name, position) if isinstance(made, Made) else None
