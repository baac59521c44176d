"""What reading the steps of one pipeline has in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from allranks.errors import Problem
from allranks.plan.assets.lookup import AssetLookup
from allranks.plan.graph import Code, Literal, Location, PipelineInput
from allranks.plan.reader.bindings import value_of


@dataclass
class Context:
    """What is known of the pipeline while its steps are read.

    base:      the folder that relative paths of data are relative to
    snapshots: the folder of code snapshots; None: the code is only looked at
    values:    the literal values of the pipeline's inputs
    lookup:    finds what the pipeline names by an id; None: ids stay as they are
    alone:     whether the step is a job by itself, so that its inputs are those that the user sets
    codes:     snapshots that were taken already, by where the code is
    problems:  what was found wrong
    """

    base: Path
    snapshots: Path | None
    values: Mapping[str, Any]
    lookup: AssetLookup | None = None
    alone: bool = False
    codes: dict[object, Code | None] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


@dataclass(frozen=True)
class Place:
    """A step as messages name it."""

    step: str
    location: Location | None = None

    def key(self, key: str) -> str:
        """``step train, key resources.instance_count (pipeline.py:31)``."""
        return f"step {self.step}, key {key}{f' ({self.location})' if self.location else ''}"


def plain(value: Any) -> Any:
    """A value as plain Python: a binding as the text that the SDK would send, an enumeration's member as its value."""
    if isinstance(value, Enum):
        return value.value
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    return str(value)


def settled(value: Any, key: str, place: Place, context: Context) -> Any:
    """A setting of a step: a binding to an input of the pipeline is replaced by the input's value.

    Where there is no such value, notes a problem and gives None.
    """
    value = plain(value)
    if not isinstance(value, str):
        return value
    meant = value_of(value)
    if isinstance(meant, Literal):
        return value
    if isinstance(meant, PipelineInput) and context.values.get(meant.name) is not None:
        return context.values[meant.name]
    if isinstance(meant, PipelineInput):
        found = f"it is bound to the pipeline's input {meant.name}, which has no value"
        fix = f"give one: --set {meant.name}=VALUE"
    else:
        found = f"found {value}"
        fix = "bind it to one input of the pipeline, or write the value"
    context.problems.append(Problem(place.key(key), found, "a value that is known before the run", fix))
    return None


def whole(value: Any, key: str, place: Place, context: Context) -> int | None:
    """The same for a setting that is a whole number. Notes a problem where it is something else."""
    value = settled(value, key, place, context)
    if isinstance(value, str) and value.strip().lstrip("-").isdecimal():
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if value is not None:
        context.problems.append(Problem(place.key(key), f"found {value!r}", "a whole number"))
    return None
