"""The MLflow run of a pipeline: the parent of its steps' runs."""

from __future__ import annotations

from allranks.local.step.tracked_run import status_of
from allranks.local.tracking.client import ParentRun, Tracking, TrackingError
from allranks.plan.graph import Plan, command_job
from allranks.runs.recorder import RunRecorder, results_of
from allranks.runs.records import RunRecord


def parent_of(plan: Plan, run: RunRecord) -> ParentRun | None:
    """Return the parent of the steps' MLflow runs; None for a command job, whose only run has no parent on Azure ML
    either. A resumed run has the parent that it had before."""
    if command_job(plan) is not None:
        return None
    tags = {"allranks.run": run.id, "mlflow.source.name": plan.source}
    return ParentRun(
        run.display_name or run.name, {name: tag for name, tag in tags.items() if tag}, run.inputs, run.mlflow_run_id
    )


async def end(tracking: Tracking, recorder: RunRecorder, run: RunRecord) -> None:
    """Add the models that the run's steps registered to their records, and end the pipeline's MLflow run.

    If MLflow fails, add a note.
    """
    if not tracking.enabled:
        return
    steps = {step.mlflow_run_id: step for step in run.steps if step.mlflow_run_id and not step.reused_from}
    if not steps:
        return
    try:
        for run_id, models in (await tracking.registered(list(steps))).items():
            steps[run_id].models = models
            recorder.keep(steps[run_id])
    except TrackingError as error:
        recorder.note(None, f"MLflow gave no list of registered models: {error}")
    if tracking.parent_id is None:
        return
    try:
        await tracking.finish(status_of(run.status), results_of(run))
    except TrackingError as error:
        recorder.note(None, f"MLflow did not end the pipeline's run: {error}")
