"""Problems that the readers of pipelines and of components report with the same words."""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from allranks.contract.distributions import DISTRIBUTIONS
from allranks.contract.single import Single
from allranks.errors import Problem


def unknown_key(where: str, similar: str) -> Problem:
    """Return the problem of a key that Azure ML does not have. similar: the key that was probably meant; "" if
    unknown"""
    fix = f"did you mean {similar}?" if similar else "remove it, or correct its name"
    return Problem(where, "Azure ML has no such key", fix=fix, code="unknown-key")


def distribution_types() -> tuple[str, ...]:
    """Return the types that a distribution may have."""
    return tuple(name for name in DISTRIBUTIONS if name != Single.type)


def unknown_distribution(kind: str, where: str) -> Iterator[Problem]:
    """Yield the problem of a distribution whose type is unknown."""
    types = distribution_types()
    if kind.lower() not in types:
        expected = f"{', '.join(types[:-1])} or {types[-1]}"
        similar = difflib.get_close_matches(kind.lower(), types, n=1)
        yield Problem(where, repr(kind), expected, f"did you mean {similar[0]}?" if similar else "")
