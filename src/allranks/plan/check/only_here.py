"""Problems that a plan has on this machine only: Azure ML can resolve the name, or run the node."""

from __future__ import annotations

from collections.abc import Iterable

from allranks.errors import Problem

CODES = frozenset({"unresolved-name", "not-run-here"})
"""Assets of a workspace, a registry or the web that this machine does not have, and kinds of nodes that the local
engine does not run."""


def separated(problems: Iterable[Problem]) -> tuple[list[Problem], list[Problem]]:
    """Return the problems of the job itself, and those of this machine."""
    own: list[Problem] = []
    here: list[Problem] = []
    for problem in problems:
        (here if problem.code in CODES else own).append(problem)
    return own, here
