"""The MLflow runs of a run: one for each attempt, and their parent."""

from collections.abc import Sequence
from importlib.util import find_spec

from allranks.history.recorder import RunRecorder, results_of
from allranks.history.records import RunRecord, Status, StepRecord
from allranks.local.tracking.client import ParentRun, Tracking, TrackingError, may_track
from allranks.local.tracking.server import URI
from allranks.plan.graph import Plan, Step, is_command_job


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
        curves, result = await tracking.end(record.mlflow_run_id, status_of(record.status), record.folder)
    except TrackingError as error:
        recorder.note(record, f"MLflow returned no metrics of this step: {error}")
        return
    record.result = result or record.result
    if curves:
        # MLflow has all logged metrics, including those of a script that reports nothing to the engine.
        reported = {name: points for name, points in record.metrics.items() if name not in curves}
        recorder.forget_points(record)
        recorder.add_points(record, {**reported, **curves})


def why_no_metrics(step: Step, records: Sequence[StepRecord]) -> str:
    """Return the reason why completed attempts of a step have logged no metrics; "" if it is unknown."""
    notes = (note for record in records for note in record.notes if note.startswith("MLflow "))
    if note := next(notes, ""):
        return note
    if URI in step.environment_variables:
        return f"the step's environment variables set {URI}, so it logs elsewhere"
    if any(record.mlflow_run_id for record in records):
        return ""
    if find_spec("mlflow") is None:
        return 'mlflow is not installed beside allranks (pip install "allranks[mlflow]")'
    return "the run has --no-track" if may_track(step) else "its command does not run Python"


def status_of(status: Status) -> str:
    """Return MLflow's status of a run or step that has ended."""
    return {Status.COMPLETED: "FINISHED", Status.FAILED: "FAILED"}.get(status, "KILLED")


def parent_of(plan: Plan, run: RunRecord) -> ParentRun | None:
    """Return the parent of the steps' MLflow runs; None for a command job, whose only run has no parent on Azure ML
    either. A resumed run has the parent that it had before."""
    if is_command_job(plan):
        return None
    tags = {"allranks.run": run.id, "mlflow.source.name": plan.source}
    return ParentRun(
        run.display_name or run.name, {name: tag for name, tag in tags.items() if tag}, run.inputs, run.mlflow_run_id
    )


async def end_parent(tracking: Tracking, recorder: RunRecorder, run: RunRecord) -> None:
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
            recorder.save(steps[run_id])
    except TrackingError as error:
        recorder.note(None, f"MLflow returned no list of registered models: {error}")
    if tracking.parent_id is None:
        return
    try:
        await tracking.finish(status_of(run.status), results_of(run))
    except TrackingError as error:
        recorder.note(None, f"MLflow did not end the pipeline's run: {error}")
