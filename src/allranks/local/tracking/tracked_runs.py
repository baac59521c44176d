"""The MLflow run of a step: created before its ranks start, ended with its curves afterwards."""

from __future__ import annotations

from allranks.local.tracking.client import Tracking, TrackingError
from allranks.runs.recorder import RunRecorder
from allranks.runs.records import Status, StepRecord


async def create(
    tracking: Tracking, recorder: RunRecorder, experiment: str, run: str, record: StepRecord
) -> str | None:
    """Create the MLflow run of an attempt and return its id. If MLflow fails, add a note and return None.

    run: the id of the step's run
    """
    tags = {"allranks.run": run, "allranks.step": record.name, "allranks.attempt": str(record.attempt)}
    try:
        run_id = await tracking.create(experiment, record.display_name, tags)
    except TrackingError as error:
        recorder.note(record, f"MLflow gets no metrics of this step: {error}")
        return None
    if tracking.parent_id is not None:
        recorder.tracked(tracking.parent_id)
    return run_id


async def end(tracking: Tracking, recorder: RunRecorder, record: StepRecord) -> None:
    """End the MLflow run of an attempt, if it has one, and add its curves and its result to the record."""
    if record.mlflow_run_id is None:
        return
    try:
        ended = await tracking.end(record.mlflow_run_id, status_of(record.status))
    except TrackingError as error:
        recorder.note(record, f"MLflow gave no metrics of this step: {error}")
        return
    record.result = ended.result or record.result
    if ended.curves:
        # MLflow has all logged metrics, including those of a script that reports nothing to the engine.
        reported = {name: points for name, points in record.metrics.items() if name not in ended.curves}
        recorder.forget_points(record)
        recorder.add_points(record, {**reported, **ended.curves})


def status_of(status: Status) -> str:
    """Return MLflow's status of a run or step that has ended."""
    return {Status.COMPLETED: "FINISHED", Status.FAILED: "FAILED"}.get(status, "KILLED")
