"""Check literals against the type, range and enum of their ports, and suggest corrections."""

import math
import re
from collections.abc import Iterable, Iterator

from allranks.contract.templating import EXPECTED, wire
from allranks.errors import Problem, did_you_mean, finding
from allranks.plan import values
from allranks.plan.ports import Input
from allranks.secrets import quoted

_WHOLE = re.compile(r"\s*[+-]?\d+\s*")
_EXPRESSION = re.compile(r"\$\{\{.*?}}")
_BINDINGS = "${{parent.inputs.NAME}} or ${{parent.jobs.STEP.outputs.NAME}}"
MACROS = f"${{{{{values.TRIGGER_TIME}}}}} or ${{{{{values.NAME}}}}}, in a string"
_CLOSE = 0.75
"""Minimum similarity of a suggestion: ``tset`` suggests ``test``, but ``dataset_repo_id`` not ``dataset``."""

_EXPONENT = re.compile(r"([+-]?\d+)[eE]([+-]?)(\d+)")


def one_of(names: Iterable[str], none: str) -> str:
    """Return ``one of NAME, NAME``. none: the text if there are no names"""
    listed = ", ".join(names)
    return f"one of {listed}" if listed else none


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return ``did you mean lr?``; "" if no name is similar."""
    return did_you_mean(name, names, cutoff=_CLOSE)


def number_with_point(value: object) -> str:
    """Return the fix for a number such as ``1e-8``, which is a string in YAML 1.1; "" for any other value."""
    match = _EXPONENT.fullmatch(value) if isinstance(value, str) else None
    return f"write {match[1]}.0e{match[2] or '+'}{match[3]}: {value} is a string in YAML" if match else ""


def fits(value: str | int | float | bool, kind: str) -> bool:
    """Return whether a literal is of a type. Strings that parse as numbers are numbers: commands receive text."""
    if kind == "boolean":
        return str(value).strip().lower() in ("true", "false")
    if kind not in ("integer", "number") or isinstance(value, bool):
        return kind not in ("integer", "number")
    if kind == "integer":
        # azure-ai-ml accepts 3.0.
        return value.is_integer() if isinstance(value, float) else _WHOLE.fullmatch(str(value)) is not None
    try:
        return math.isfinite(float(value))
    except ValueError:
        return False


def wrong(
    where: str, port: Input, value: str | int | float | bool, fix: str, whose: str = "", expressions: str = _BINDINGS
) -> Iterator[Problem]:
    """Yield the problems of a literal for a port.

    where: the port as named in messages
    fix:   the fix if no other value is suggested
    """
    found = f"{whose}{quoted(port.name, value)}"
    if isinstance(value, str) and (expression := _EXPRESSION.search(value)):
        kind = "binding" if expressions == _BINDINGS else "macro"
        code = "unknown-expression" if port.type == "string" else "value"
        yield finding(code, where, f"{expression[0]} is not a {kind}", expressions)
    elif not fits(value, port.type):
        yield Problem(where, found, EXPECTED[port.type], fix, code="wrong-type")
    elif port.enum and not _is_choice(value, port):
        similar = suggestion(wire(value), port.enum)
        yield finding("value-outside-enum", where, found, one_of(port.enum, ""), similar or fix)
    elif port.type in ("integer", "number"):
        number = float(value)
        if port.minimum is not None and number < port.minimum:
            yield Problem(where, found, f"at least {port.minimum:g}", fix)
        if port.maximum is not None and number > port.maximum:
            yield Problem(where, found, f"at most {port.maximum:g}", fix)


def _is_choice(value: str | int | float | bool, port: Input) -> bool:
    """Return whether a value is in the enum of its port. Numbers are compared by value: 1 equals 1.0."""
    numbers = [float(each) for each in port.enum if fits(each, "number")] if port.type in ("integer", "number") else []
    return wire(value) in port.enum or (bool(numbers) and float(value) in numbers)
