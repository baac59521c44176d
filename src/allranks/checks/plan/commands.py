"""Check the command of a step: its names are ports of the step, and every input that it needs has a value."""

from __future__ import annotations

import re
from collections.abc import Iterator

from allranks.checks.plan.bindings import is_given
from allranks.checks.plan.rule import Level, Rule
from allranks.checks.plan.scope import Scope
from allranks.checks.plan.suggestions import meant, one_of
from allranks.contract.templating import Name, is_closed, used_names
from allranks.errors import Problem
from allranks.plan.graph import Step
from allranks.plan.ports import Literal

COMMAND = Rule(
    "command",
    Level.ERROR,
    "The command is empty, has an open $[[, names a port that the step does not have, or uses an "
    "optional input that is not given.",
    'Microsoft Learn, "CLI (v2) command component YAML schema", command expressions',
    "correct the command",
)

_QUOTED = re.compile(r"'\$\{\{\s*inputs\.([^\s{}]+)\s*}}'")


def of_step(scope: Scope, step: Step, supplied: frozenset[str]) -> Iterator[Problem]:
    """Yield the problems of the step's command. supplied: inputs to which a loop gives values."""
    where = scope.key(step, "command")
    if not step.command.strip():
        yield Problem(where, "it is empty", "a command")
        return
    if not is_closed(step.command):
        yield Problem(where, "a $[[ is never closed", "$[[ ... ]] around what belongs to an optional input", "add ]]")
    inputs = {port.name: port for port in step.inputs}
    known = {"inputs": list(inputs), "outputs": [port.name for port in step.outputs]}
    for name in dict.fromkeys(used_names(step.command)):
        if name.kind not in known:
            expected = "${{inputs.NAME}} or ${{outputs.NAME}}"
            yield Problem(where, f"{name} is not known in a command", expected)
        elif name.name not in known[name.kind]:
            yield _unknown(where, name, known[name.kind])
        elif name.kind == "inputs" and not name.optional:
            port = inputs[name.name]
            if port.optional and port.name not in supplied and not is_given(scope, port.value):
                fix = f"write $[[ ... {name} ... ]] around what needs it, or give the input"
                yield Problem(where, f"{name} is optional and not given, but always used", "", fix)


def of_quotes(scope: Scope, step: Step) -> Iterator[Problem]:
    """Yield values that end the single quotes around them in the command, so that the shell splits the rest."""
    quoted = {match[1] for match in _QUOTED.finditer(step.command)}
    for port in step.inputs:
        value = scope.value(port.value) if port.name in quoted else None
        if isinstance(value, Literal) and "'" in str(value.value):
            expected = f"a text without ', because the command has {port.name} in single quotes"
            yield Problem(scope.key(step, f"inputs.{port.name}"), str(value.value), expected, 'use " in its place')


def _unknown(where: str, name: Name, known: list[str]) -> Problem:
    kind = name.kind.removesuffix("s")
    fix = meant(name.name, known) or f"declare {name.name} in the component's {name.kind}"
    return Problem(where, f"{name}: there is no such {kind}", one_of(known, f"the step has no {name.kind}"), fix)
