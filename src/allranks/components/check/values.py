"""Check what a user can type into the form: ranges, enums and defaults."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from allranks.components.check.subject import DATA, NUMBERS, Finding, PortSpec, Subject
from allranks.plan.check.suggestions import number_with_point

_PYTHON: dict[str, type | tuple[type, ...]] = {"integer": int, "number": (int, float), "boolean": bool, "string": str}
_EXPECTED = {"integer": "a whole number", "number": "a number", "boolean": "true or false", "string": "a text"}


def ranges(subject: Subject) -> Iterator[Finding]:
    """Check the ranges. The SDK reads a bound as it reads a default, and refuses values that are outside."""
    for port in subject.inputs:
        low, high = port.minimum, port.maximum
        if port.type not in NUMBERS:
            for key, bound in (("min", low), ("max", high)):
                if bound is not None:
                    found = f"{key} {bound} of {port.type or 'no type'}"
                    yield subject.advice(("inputs", port.name, key), found, "a range of numbers alone", "remove it")
            continue
        if low is None and high is None and port.enum is None:
            found = f"input {port.name} accepts any number"
            fix = "add min, max or both, so that the form rejects invalid values"
            yield subject.advice(("inputs", port.name), found, "a range", fix)
        wrong = [(key, bound) for key, bound in (("min", low), ("max", high)) if not _parses(bound, port.type)]
        for key, bound in wrong:
            found = f"{key} {bound!r} of type {port.type}"
            yield subject.error(("inputs", port.name, key), found, _EXPECTED[port.type], "correct it")
        if not wrong and low is not None and high is not None and float(low) > float(high):
            found = f"min {low} is above max {high}"
            yield subject.error(("inputs", port.name, "min"), found, "min at most max", "exchange them")


def enums(subject: Subject) -> Iterator[Finding]:
    for port in subject.inputs:
        if port.enum is None:
            continue
        keys = ("inputs", port.name, "enum")
        values = list(port.enum) if isinstance(port.enum, (list, tuple)) else []
        if port.type in DATA:
            yield subject.error(keys, f"an enum of {port.type}", "an enum of texts or numbers", "remove it")
        elif port.type == "boolean":
            yield subject.advice(keys, "an enum of boolean", "an enum of texts or numbers", "remove it")
        elif not isinstance(port.enum, (list, tuple)):
            yield subject.error(keys, f"enum {port.enum!r}", "a list of values", "write a list: [first, second]")
        elif len(values) < 2:
            fix = "add a value, or remove the input"
            yield subject.advice(keys, f"enum {port.enum!r}", "a list of at least two values", fix)
        elif len({str(value) for value in values}) < len(values):
            yield subject.advice(keys, f"enum {values}", "each value once", "remove the one that is there twice")
        for value in values:
            if port.type in _PYTHON and port.type != "boolean" and not _fits(value, port.type):
                # YAML reads yes, no, on and off as booleans.
                fix = f'put it in quotes: "{value}"' if port.type == "string" else "correct it"
                yield subject.error(keys, f"{value!r} in the enum of type {port.type}", _EXPECTED[port.type], fix)


def defaults(subject: Subject) -> Iterator[Finding]:
    for port in subject.inputs:
        if port.default is None:
            continue
        keys = ("inputs", port.name, "default")
        if port.type in DATA:  # Input._update_default of the SDK raises
            found = f"default {port.default!r} of {port.type}"
            fix = "remove it; if the port may be empty, add optional: true"
            yield subject.error(keys, found, "no default: the designer connects data", fix)
        elif port.type in _PYTHON and not _fits(port.default, port.type):
            if port.type == "string":
                fix = f'put it in quotes: "{port.default}"'
            else:
                fix = (number_with_point(port.default) if port.type == "number" else "") or "write it without quotes"
            is_refused = not _parses(port.default, port.type)
            is_changed = isinstance(port.default, bool)  # YAML's `no` becomes the text "False"
            report = subject.error if is_refused else subject.warning if is_changed else subject.advice
            yield report(keys, f"default {port.default!r} of type {port.type}", _EXPECTED[port.type], fix)
        elif isinstance(port.enum, (list, tuple)) and str(port.default) not in map(str, port.enum):
            expected = f"one of {', '.join(map(str, port.enum))}"
            yield subject.error(keys, f"default {port.default!r}", expected, "name one of those, or add it to the enum")
        elif outside := _outside(port):
            yield subject.error(keys, f"default {port.default}", outside, "correct the default or the range")


def _parses(value: Any, kind: str) -> bool:
    """Return whether the SDK takes the value for this type, as `Input._parse` does: also a number as a text."""
    if kind == "string" or value is None:
        return True
    if kind == "boolean":
        return str(value).lower() in ("true", "false")
    try:
        number = float(value)
    except (TypeError, ValueError):
        return False
    return math.isfinite(number) and (kind == "number" or number.is_integer())


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
    if _parses(port.minimum, port.type) and port.minimum is not None and port.default < float(port.minimum):
        return f"at least {float(port.minimum):g}"
    if _parses(port.maximum, port.type) and port.maximum is not None and port.default > float(port.maximum):
        return f"at most {float(port.maximum):g}"
    return ""
