"""The order of the inputs, which is the order in which the designer draws them.

It draws data on the card's edge, from left to right, and parameters as a form, from top to bottom. So data comes first,
in both what must be connected before what may be; and in the form what must be filled in stands on top. Parameters with
a default and optional ones may mix: both can be left alone, and then it says more to have related ones together.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from allranks.components.check.subject import DATA, PortSpec, Subject
from allranks.errors import Problem

_KINDS = ("data that must be connected", "optional data", "parameters without a default", "other parameters")


def order(subject: Subject) -> Iterator[Problem]:
    for before, port in pairwise(subject.inputs):
        if _rank(port) < _rank(before):
            found = f"{port.name} ({_KINDS[_rank(port)]}) stands below {before.name} ({_KINDS[_rank(before)]})"
            first = next(each for each in subject.inputs if _rank(each) > _rank(port))
            fix = f"move {port.name} above {first.name}"
            yield subject.wrong(("inputs", port.name), found, f"the order: {', '.join(_KINDS)}", fix)


def _rank(port: PortSpec) -> int:
    if port.type in DATA:
        return 1 if port.optional else 0
    return 2 if not port.optional and port.default is None else 3
