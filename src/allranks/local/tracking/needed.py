"""Which steps get an MLflow run."""

from __future__ import annotations

from importlib.util import find_spec

from allranks.plan.graph import Step


def may_track(step: Step) -> bool:
    """Return whether the step may log to MLflow: MLflow is installed, and the step has code or starts Python.

    On Azure ML, every job has an MLflow run. Here, creating one takes about 10 ms, after seconds for the first one, so
    a step that only runs `cp`, for example, gets none."""
    return (step.code is not None or "python" in step.command) and find_spec("mlflow") is not None
