"""Settings of a distribution that cannot work, said by key. Whoever knows the step and the file adds them."""

from __future__ import annotations

from collections.abc import Mapping

from allranks.errors import Problem


def at_least_one(counts: Mapping[str, int]) -> tuple[Problem, ...]:
    """A problem for each count, by its key, that is below 1."""
    return tuple(
        Problem(where=key, found=f"found {count}", expected="at least 1", fix=f"set {key} to 1 or more")
        for key, count in counts.items()
        if count < 1
    )
