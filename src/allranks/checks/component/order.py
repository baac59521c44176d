"""Check the order of the inputs, in which the designer draws them.

The designer draws data inputs on the card's edge, from left to right, and parameters as a form, from top to bottom.
Data inputs come first. Among them, and among parameters, required inputs come first. Parameters with a default and
optional parameters may be mixed, so that related ones can be grouped.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from allranks.checks.component.subject import DATA, PortSpec, Subject
from allranks.checks.plan.rule import Level, Rule
from allranks.errors import Problem

_KINDS = ("data that must be connected", "optional data", "parameters without a default", "other parameters")

PORT_ORDER = Rule(
    "port-order", Level.ADVICE, f"Inputs are not in the order: {', '.join(_KINDS)}.", "style", "move the input up"
)


def order(subject: Subject) -> Iterator[Problem]:
    for before, port in pairwise(subject.inputs):
        if rank(port) < rank(before):
            found = f"{port.name} ({_KINDS[rank(port)]}) is below {before.name} ({_KINDS[rank(before)]})"
            first = next(other for other in subject.inputs if rank(other) > rank(port))
            fix = f"move {port.name} above {first.name}"
            yield subject.report(PORT_ORDER, ("inputs", port.name), found, f"the order: {', '.join(_KINDS)}", fix)


def rank(port: PortSpec) -> int:
    """Return the position of a port's group of ports."""
    if port.type in DATA:
        return 1 if port.optional else 0
    return 2 if not port.optional and port.default is None else 3
