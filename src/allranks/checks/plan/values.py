"""Check literals against the type, range and choices of their ports."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from allranks.checks.plan.rule import Level, Rule
from allranks.checks.plan.scope import Scope
from allranks.checks.plan.suggestions import meant, one_of
from allranks.checks.plan.tolerated import OUTSIDE_ENUM
from allranks.contract.templating import wire
from allranks.errors import Problem
from allranks.plan import macros
from allranks.plan.graph import Node
from allranks.plan.ports import GraphInput, Input, Literal
from allranks.secrets import quoted

VALUES = Rule(
    "value",
    Level.ERROR,
    "A value is not of the input's type, or outside of its range or enum.",
    'Microsoft Learn, "Input Class" (azure.ai.ml.Input), min and max: the execution of a job with another value fails; '
    '"CLI (v2) command component YAML schema", type, min, max and enum of an input',
    "change the value",
)

_EXPECTED = {"integer": "a whole number", "number": "a number", "boolean": "true or false"}
_WHOLE = re.compile(r"\s*[+-]?\d+\s*")
_EXPRESSION = re.compile(r"\$\{\{.*?}}")
_BINDINGS = "${{parent.inputs.NAME}} or ${{parent.jobs.STEP.outputs.NAME}}"
_MACROS = f"${{{{{macros.TRIGGER_TIME}}}}} or ${{{{{macros.NAME}}}}}, in a string"


def of_pipeline_input(scope: Scope, port: Input) -> Iterator[Problem]:
    """Yield the problems of the value of an input of the pipeline, regardless of the ports bound to it."""
    where = scope.own_key(f"inputs.{port.name}")
    if isinstance(port.value, Literal):
        value = _without_macros(port, port.value.value)
        yield from wrong(where, port, value, f"--set {port.name}=VALUE", expressions=_MACROS)


def of_input(scope: Scope, node: Node, port: Input) -> Iterator[Problem]:
    """Yield the problems of the value of a node's input, whether it is literal or bound."""
    where = scope.key(node, f"inputs.{port.name}")
    if isinstance(port.value, Literal):
        yield from wrong(where, port, port.value.value, f"change {port.name}")
    elif isinstance(port.value, GraphInput):
        name = port.value.name
        source, bound = scope.graph.input_by_name.get(name), scope.value(port.value)
        # A value that does not match its own declaration is reported there.
        if source and isinstance(bound, Literal):
            value = _without_macros(source, bound.value)
            if not list(wrong("", source, value, "")):
                whose = f"input {name} of {scope.name} is "
                yield from wrong(where, port, value, scope.set_input(name, "VALUE"), whose)


def fits(value: str | int | float | bool, kind: str) -> bool:
    """Return whether a literal is of a type. A string that parses as a number is one: commands receive text."""
    if kind == "integer":
        return bool(_WHOLE.fullmatch(value)) if isinstance(value, str) else type(value) is int
    if kind == "number":
        if isinstance(value, bool):
            return False
        try:
            return math.isfinite(float(value))
        except ValueError:
            return False
    if kind == "boolean":
        return isinstance(value, bool) or (isinstance(value, str) and value.strip().lower() in ("true", "false"))
    return True


def _without_macros(port: Input, value: str | int | float | bool) -> str | int | float | bool:
    """Return a value with its macros replaced by their names, because their values are known only in a run."""
    if port.type != "string" or not isinstance(value, str):
        return value
    return macros.EXPRESSION.sub(lambda match: match[1], value)


def wrong(
    where: str,
    port: Input,
    value: str | int | float | bool,
    fix: str,
    whose: str = "",
    expressions: str = _BINDINGS,
) -> Iterator[Problem]:
    """Yield the problems of a literal for a port."""
    found = f"{whose}{quoted(port.name, value)}"
    if isinstance(value, str) and (expression := _EXPRESSION.search(value)):
        kind = "binding" if expressions == _BINDINGS else "macro"
        yield Problem(where, f"{expression[0]} is no {kind}", expressions)
    elif not fits(value, port.type):
        yield Problem(where, found, _EXPECTED[port.type], fix, code="wrong-type")
    elif port.enum and wire(value) not in port.enum:
        similar = meant(wire(value), port.enum)
        yield OUTSIDE_ENUM.problem(where, found, one_of(port.enum, ""), similar or fix)
    elif port.type in ("integer", "number"):
        number = float(value)
        if port.minimum is not None and number < port.minimum:
            yield Problem(where, found, f"at least {port.minimum:g}", fix)
        if port.maximum is not None and number > port.maximum:
            yield Problem(where, found, f"at most {port.maximum:g}", fix)
