"""Distribution type tensorflow: the platform starts workers and parameter servers; the step ends with the chief."""

from __future__ import annotations

from allranks.contract.tensorflow import TensorFlow
from allranks.errors import Problem
from allranks.local.launchers.launching import Assignment, Launching

LINGER = 30.0
"""Seconds that the other workers have to exit after the chief, if there are no parameter servers."""


def missing(path: str) -> Problem | None:  # noqa: ARG001 - the script's own import fails if TensorFlow is missing
    return None


def launch(assignment: Assignment) -> Launching:
    """Start every task. Parameter servers, and workers that serve a chief, wait for requests and do not exit."""
    settings = assignment.launch.distribution
    assert isinstance(settings, TensorFlow)
    linger = 0.0 if settings.parameter_server_count else LINGER
    return Launching(assignment.by_instance(), frozenset({assignment.ranks[0].name}), linger)
