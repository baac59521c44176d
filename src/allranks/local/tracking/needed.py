"""Which steps are given an MLflow run."""

from __future__ import annotations

from importlib.util import find_spec

from allranks.plan.graph import Step


def may_track(step: Step) -> bool:
    """Return whether the step could log to MLflow: it is installed, and the step has code or starts Python.

    On Azure ML every job has an MLflow run, which costs nothing there. Here making one takes some 10 ms after a start
    of seconds, so a step that only runs, say, `cp`, goes without.
    """
    return (step.code is not None or "python" in step.command) and find_spec("mlflow") is not None
