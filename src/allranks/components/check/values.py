"""Check what a user can type into the form: ranges, enums and defaults."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from allranks.components.check.subject import DATA, NUMBERS, PortSpec, Subject
from allranks.errors import Problem
from allranks.plan.check.suggestions import number_with_point

_PYTHON: dict[str, type | tuple[type, ...]] = {"integer": int, "number": (int, float), "boolean": bool, "string": str}
_EXPECTED = {"integer": "a whole number", "number": "a number", "boolean": "true or false", "string": "a text"}


def ranges(subject: Subject) -> Iterator[Problem]:
    for port in subject.inputs:
        low, high = port.minimum, port.maximum
        if port.type not in NUMBERS:
            for key, bound in (("min", low), ("max", high)):
                if bound is not None:
                    found = f"{key} {bound} of {port.type or 'no type'}"
                    yield subject.wrong(("inputs", port.name, key), found, "a range of numbers alone", "remove it")
            continue
        if low is None and high is None and port.enum is None:
            found = f"input {port.name} accepts any number"
            fix = "add min, max or both, so that the form rejects invalid values"
            yield subject.wrong(("inputs", port.name), found, "a range", fix)
        wrong = [(key, bound) for key, bound in (("min", low), ("max", high)) if not _fits(bound, port.type)]
        for key, bound in wrong:
            found = f"{key} {bound!r} of type {port.type}"
            yield subject.wrong(("inputs", port.name, key), found, _EXPECTED[port.type], "correct it")
        if not wrong and low is not None and high is not None and low > high:
            found = f"min {low} is above max {high}"
            yield subject.wrong(("inputs", port.name, "min"), found, "min at most max", "exchange them")


def enums(subject: Subject) -> Iterator[Problem]:
    for port in subject.inputs:
        if port.enum is None:
            continue
        keys = ("inputs", port.name, "enum")
        values = list(port.enum) if isinstance(port.enum, (list, tuple)) else []
        if port.type in DATA or port.type == "boolean":
            yield subject.wrong(keys, f"an enum of {port.type}", "an enum of texts or numbers", "remove it")
        elif len(values) < 2:
            fix = "add a value, or remove the input"
            yield subject.wrong(keys, f"enum {port.enum!r}", "a list of at least two values", fix)
        elif len({str(value) for value in values}) < len(values):
            yield subject.wrong(keys, f"enum {values}", "each value once", "remove the one that is there twice")
        for value in values:
            if port.type in _PYTHON and port.type != "boolean" and not _fits(value, port.type):
                # YAML reads yes, no, on and off as booleans.
                fix = f'put it in quotes: "{value}"' if port.type == "string" else "correct it"
                yield subject.wrong(keys, f"{value!r} in the enum of type {port.type}", _EXPECTED[port.type], fix)


def defaults(subject: Subject) -> Iterator[Problem]:
    for port in subject.inputs:
        if port.default is None:
            continue
        keys = ("inputs", port.name, "default")
        if port.type in DATA:
            found = f"default {port.default!r} of {port.type}"
            fix = "remove it; if the port may be empty, add optional: true"
            yield subject.wrong(keys, found, "no default: the designer connects data", fix)
        elif port.type in _PYTHON and not _fits(port.default, port.type):
            if port.type == "string":
                fix = f'put it in quotes: "{port.default}"'
            else:
                fix = (number_with_point(port.default) if port.type == "number" else "") or "write it without quotes"
            yield subject.wrong(keys, f"default {port.default!r} of type {port.type}", _EXPECTED[port.type], fix)
        elif isinstance(port.enum, (list, tuple)) and str(port.default) not in map(str, port.enum):
            expected = f"one of {', '.join(map(str, port.enum))}"
            yield subject.wrong(keys, f"default {port.default!r}", expected, "name one of those, or add it to the enum")
        elif outside := _outside(port):
            yield subject.wrong(keys, f"default {port.default}", outside, "correct the default or the range")


def _fits(value: Any, kind: str) -> bool:
    if value is None:
        return True
    if kind != "boolean" and isinstance(value, bool):
        return False
    if kind == "integer" and isinstance(value, float):
        # The SDK stores an integer's bounds as floats.
        return value.is_integer()
    return isinstance(value, _PYTHON[kind]) and not (isinstance(value, float) and math.isnan(value))


def _outside(port: PortSpec) -> str:
    """Return what the default should be if it is outside of the range; else ""."""
    if port.type not in NUMBERS:
        return ""
    if _fits(port.minimum, port.type) and port.minimum is not None and port.default < port.minimum:
        return f"at least {port.minimum:g}"
    if _fits(port.maximum, port.type) and port.maximum is not None and port.default > port.maximum:
        return f"at most {port.maximum:g}"
    return ""
