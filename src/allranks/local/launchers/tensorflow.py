"""Workers and parameter servers of TensorFlow: the platform starts all of them, and the chief's end is the step's."""

from __future__ import annotations

from allranks.contract.tensorflow import TensorFlow
from allranks.errors import Problem
from allranks.local.launchers.launching import Assignment, Launching

LINGER = 30.0
"""Seconds that the other workers have after the chief, which they end together with where nobody is a server."""


def missing(path: str) -> Problem | None:  # noqa: ARG001 - the script's own import tells
    return None


def launch(assignment: Assignment) -> Launching:
    """Return every task. Parameter servers, and workers that serve a chief, wait for requests and never end by
    themselves."""
    settings = assignment.launch.distribution
    assert isinstance(settings, TensorFlow)
    linger = 0.0 if settings.parameter_server_count else LINGER
    return Launching(assignment.by_instance(), frozenset({assignment.ranks[0].name}), linger)
