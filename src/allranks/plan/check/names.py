"""Names of steps, ports and variables: each once, and usable as the names of folders and variables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from allranks.errors import Problem
from allranks.plan.check import place
from allranks.plan.graph import Plan, Step

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*")
_EXPECTED = "letters, digits, _, - and .; a letter, digit or _ first"


def of_pipeline(plan: Plan) -> Iterator[Problem]:
    """The pipeline's steps, inputs and outputs."""
    if not plan.steps:
        yield Problem(place.of_pipeline(plan, "jobs"), "the pipeline has no steps", "at least one step")
    yield from _wrong(place.of_pipeline(plan, "jobs"), (step.name for step in plan.steps))
    yield from _wrong(place.of_pipeline(plan, "inputs"), (port.name for port in plan.inputs))
    yield from _wrong(place.of_pipeline(plan, "outputs"), (port.name for port in plan.outputs))


def of_step(step: Step) -> Iterator[Problem]:
    """The step's ports and environment variables."""
    yield from _wrong(place.of_key(step, "inputs"), (port.name for port in step.inputs))
    yield from _wrong(place.of_key(step, "outputs"), (port.name for port in step.outputs))
    for name, value in step.environment_variables.items():
        where = place.of_key(step, f"environment_variables.{name}")
        if not name or "=" in name or "\0" in name:
            yield Problem(where, f"{name!r} cannot be the name of a variable", "a name without = in it")
        if "\0" in value:
            yield Problem(where, "there is a NUL character in the value", "a text without one")


def _wrong(where: str, names: Iterable[str]) -> Iterator[Problem]:
    for name, count in Counter(names).items():
        if count > 1:
            yield Problem(where, f"the name {name} is there {count} times", "each name once", "rename all but one")
        if not _NAME.fullmatch(name):
            yield Problem(where, f"{name!r} cannot be a name", _EXPECTED, "rename it")
