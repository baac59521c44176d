"""Check what a user can type into the form: ranges, enums and defaults."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from allranks.catalog.declared_ports import DATA, NUMBERS, PortSpec
from allranks.checks.component.subject import Subject
from allranks.errors import Problem, Rule

_PYTHON: dict[str, type | tuple[type, ...]] = {"integer": int, "number": (int, float), "boolean": bool, "string": str}
_EXPECTED = {"integer": "a whole number", "number": "a number", "boolean": "true or false", "string": "a text"}

_PARSE = "azure-ai-ml, `entities/_inputs_outputs/input.py`, Input._parse"

RANGE_BOUND = Rule.named("range-bound")
RANGE_ORDER = Rule.named("range-order")
ENUM_OF_DATA = Rule.named("enum-of-data")
ENUM_LIST = Rule.named("enum-list")
ENUM_TYPE = Rule.named("enum-type")
DEFAULT_OF_DATA = Rule.named("default-of-data")
DEFAULT_TYPE = Rule.named("default-type")
DEFAULT_CHANGED = Rule.named("default-changed")
DEFAULT_ENUM = Rule.named("default-enum")
DEFAULT_RANGE = Rule.named("default-range")


def ranges(subject: Subject) -> Iterator[Problem]:
    """Check the ranges. The SDK reads a bound as it reads a default, and refuses values that are outside."""
    for port in subject.inputs:
        low, high = port.minimum, port.maximum
        if port.type not in NUMBERS:
            continue
        wrong = [(key, bound) for key, bound in (("min", low), ("max", high)) if not _parses(bound, port.type)]
        for key, bound in wrong:
            found = f"{key} {bound!r} of type {port.type}"
            yield subject.report(RANGE_BOUND, ("inputs", port.name, key), found, _EXPECTED[port.type])
        if not wrong and low is not None and high is not None and float(low) > float(high):
            found = f"min {low} is above max {high}"
            yield subject.report(RANGE_ORDER, ("inputs", port.name, "min"), found, "min at most max")


def enums(subject: Subject) -> Iterator[Problem]:
    for port in subject.inputs:
        if port.enum is None:
            continue
        keys = ("inputs", port.name, "enum")
        values = list(port.enum) if isinstance(port.enum, (list, tuple)) else []
        if port.type in DATA:
            yield subject.report(ENUM_OF_DATA, keys, f"an enum of {port.type}", "an enum of texts or numbers")
        elif not isinstance(port.enum, (list, tuple)):
            yield subject.report(ENUM_LIST, keys, f"enum {port.enum!r}", "a list of values")
        for number, value in enumerate(values):
            if port.type in _PYTHON and port.type != "boolean" and not _fits(value, port.type):
                # YAML reads yes, no, on and off as booleans.
                fix = subject.in_quotes(value, *keys, str(number)) if port.type == "string" else "correct it"
                found = f"{subject.written(repr(value), *keys, str(number))} in the enum of type {port.type}"
                yield subject.report(ENUM_TYPE, keys, found, _EXPECTED[port.type], fix)


def defaults(subject: Subject) -> Iterator[Problem]:
    for port in subject.inputs:
        if port.default is None:
            continue
        keys = ("inputs", port.name, "default")
        if port.type in DATA:  # Input._update_default of the SDK raises
            found = f"default {port.default!r} of {port.type}"
            yield subject.report(DEFAULT_OF_DATA, keys, found, "no default: the designer connects data")
        elif port.type in _PYTHON and not _parses(port.default, port.type):
            found = f"default {port.default!r} of type {port.type}"
            yield subject.report(DEFAULT_TYPE, keys, found, _EXPECTED[port.type])
        elif port.type in _PYTHON and port.type != "boolean" and isinstance(port.default, bool):
            # YAML's `no` becomes the text "False".
            fix = subject.in_quotes(port.default, *keys) if port.type == "string" else "write a number"
            found = f"default {port.default!r} of type {port.type}"
            yield subject.report(DEFAULT_CHANGED, keys, found, _EXPECTED[port.type], fix)
        elif isinstance(port.enum, (list, tuple)) and str(port.default) not in map(str, port.enum):
            expected = f"one of {', '.join(map(str, port.enum))}"
            yield subject.report(
                DEFAULT_ENUM, keys, f"default {port.default!r}", expected, "name one of those, or add it to the enum"
            )
        elif outside := _outside(port):
            yield subject.report(DEFAULT_RANGE, keys, f"default {port.default}", outside)


def _parses(value: Any, kind: str) -> bool:
    """Return whether the SDK accepts the value for this type, as `Input._parse` does: also a number as a text."""
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
    if value is None or isinstance(value, bool):
        return value is None
    if kind == "integer" and isinstance(value, float):
        # The SDK stores an integer's bounds as floats.
        return value.is_integer()
    return isinstance(value, _PYTHON[kind]) and not (isinstance(value, float) and math.isnan(value))


def _outside(port: PortSpec) -> str:
    """Return what the default should be if it is outside of the range; else ""."""
    if port.type not in NUMBERS:
        return ""
    default = float(port.default)
    if _parses(port.minimum, port.type) and port.minimum is not None and default < float(port.minimum):
        return f"at least {float(port.minimum):g}"
    if _parses(port.maximum, port.type) and port.maximum is not None and default > float(port.maximum):
        return f"at most {float(port.maximum):g}"
    return ""
