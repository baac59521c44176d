"""Distribution type pytorch, and steps without a distribution: the platform starts every process."""

from __future__ import annotations

from allranks.errors import Problem
from allranks.local.launchers.launching import Assignment, Launching


def missing(path: str) -> Problem | None:  # noqa: ARG001 - needs only a shell
    return None


def launch(assignment: Assignment) -> Launching:
    """Start every rank. The step ends when the last one exits."""
    return Launching(assignment.by_instance(), frozenset(rank.name for rank in assignment.ranks))
