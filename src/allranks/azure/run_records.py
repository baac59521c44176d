"""Records of runs on Azure ML, built from what the service reports, in the same form as records of local runs."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from allranks.plan import codec
from allranks.plan.node_records import graph_records
from allranks.plan.secrets import hidden
from allranks.runs.records import RunRecord, Status, StepRecord, Submission, Verdict
from allranks.runs.store import Store
from allranks.runs.workspace import Workspace

if TYPE_CHECKING:
    from allranks.azure.runs import JobState
    from allranks.azure.workspace import WorkspaceName
    from allranks.plan.graph import Plan

_STATES = {
    "NotStarted": Status.NOT_STARTED,
    "Queued": Status.PREPARING,
    "Preparing": Status.PREPARING,
    "Provisioning": Status.PREPARING,
    "Starting": Status.PREPARING,
    "Completed": Status.COMPLETED,
    "Failed": Status.FAILED,
    "Canceled": Status.CANCELED,
    "Skipped": Status.SKIPPED,
}


def add_record(
    workspace: Workspace, plan: Plan, name: str, where: WorkspaceName, studio: str, *, pipeline: bool
) -> RunRecord:
    """Store the record of a run that was just submitted. name: of the job, set by the service"""
    folder = workspace.runs / name
    record = RunRecord(
        id=name,
        name=plan.name,
        display_name=plan.display_name or plan.name,
        source=plan.source,
        instances=f"Azure ML {where.workspace_name}",
        created=time.time(),
        folder=str(folder),
        steps=list(graph_records(plan.graph, folder)),
        submitted=Submission(where.subscription_id, where.resource_group, where.workspace_name, studio, pipeline),
    )
    workspace.make()
    with Store(workspace.database) as store:
        # The run is never resumed, so its secrets are not needed.
        store.add_run(record, hidden(codec.dumps(plan)).plan)
    return record


def update(record: RunRecord, state: JobState) -> list[StepRecord]:
    """Update the record. Return the steps whose state has changed."""
    changed = []
    for job, step in _matched(record, state):
        before = step.status
        step.mlflow_run_id = job.name
        step.status = status(job.status)
        step.started, step.ended = job.started, job.ended
        step.reused_from = job.reused_from or None
        step.result = job.result
        if step.status is Status.FAILED:
            step.verdict = Verdict(step.name, job.error or "the service gives no reason")
        if step.status is not before:
            changed.append(step)
    record.status, record.ended = status(state.status), state.ended
    failed = record.status is Status.FAILED and not any(step.verdict for step in record.steps)
    if failed and state.error and state.error not in record.notes:
        record.notes.append(state.error)
    return changed


def status(word: str) -> Status:
    """Return the status for the service's status. Its states before and after a job's execution are Running."""
    return _STATES.get(word, Status.RUNNING)


def _matched(record: RunRecord, state: JobState) -> Iterator[tuple[JobState, StepRecord]]:
    """Yield each job of the run with its step. The service names a step's job like the step, or by its display name."""
    if not is_pipeline(record):
        yield state, record.steps[0]
        return
    unmatched = {step.name: step for step in record.steps}
    for job in state.steps:
        steps = unmatched.values()
        step = next((candidate for candidate in steps if candidate.mlflow_run_id == job.name), None)
        step = step or unmatched.get(job.display_name)
        step = step or next((candidate for candidate in steps if candidate.display_name == job.display_name), None)
        if step is None:
            step = _unplanned(record, job)
        unmatched.pop(step.name, None)
        yield job, step


def _unplanned(record: RunRecord, job: JobState) -> StepRecord:
    """Add a step that the plan lacks, because its kind cannot be planned on this machine."""
    name = job.display_name if all(step.name != job.display_name for step in record.steps) else job.name
    folder = Path(record.folder) / re.sub(r"[^\w.-]", "_", name)
    step = StepRecord(name, name, "", "", 1, 1, folder=str(folder))
    record.steps.append(step)
    return step


def is_pipeline(record: RunRecord) -> bool:
    """Return whether the record belongs to a submitted pipeline, whose steps are jobs of their own."""
    return record.submitted is not None and record.submitted.pipeline
