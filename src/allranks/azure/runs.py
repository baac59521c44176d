"""Submitted jobs: submit, query, download logs, cancel; and their records, in the form of local runs' records."""

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from allranks.azure.errors import service_errors
from allranks.azure.workspace import WorkspaceName, quiet_uploads
from allranks.history.log_redaction import redacted
from allranks.history.node_records import graph_records
from allranks.history.records import RunRecord, Status, StepRecord, Submission, Verdict
from allranks.history.store import Store
from allranks.plan import codec
from allranks.plan.graph import Plan
from allranks.plan.secrets import hidden
from allranks.sdk import internals
from allranks.secrets import redact, same_length
from allranks.workspace import Workspace

LOGS = "user_logs/"

_PIECE = 64 * 1024
_REUSED = "azureml.reusedrunid"
_RESULT = "allranks.result"


def submit(client: Any, job: Any) -> tuple[str, str]:
    """Submit the SDK's job. Return its name and its page in the studio. Raise InputError or AzureError."""
    with service_errors("submitting the job"), quiet_uploads():
        created = client.jobs.create_or_update(job)
    return str(created.name), str(created.studio_url or "")


def logs(client: Any, name: str) -> dict[str, str]:
    """Return the URLs, which are secrets, of the existing logs of a job by name, such as ``user_logs/std_log.txt``.
    Raise InputError or AzureError."""
    with service_errors(f"requesting the logs of {name}"):
        log_files = internals.run_details(client, name).log_files or {}
    return {log: address for log, address in log_files.items() if log.startswith(LOGS) and _is_safe(log)}


def download(client: Any, found: Mapping[str, str], folder: Path, *, ended: bool) -> bool:
    """Download new parts of the logs into the folder, with their secrets overwritten. Only the rest of a partial file
    is requested.

    ended: whether the logs are complete. Otherwise an unfinished line is left for the next download, because a secret
           in it may be unfinished too

    Return whether every log exists: the service lists a log before its first line is written. Raise InputError or
    AzureError.
    """
    exists = True
    for log, address in found.items():
        path = folder / log
        with service_errors(f"downloading {log}"):
            exists = _append(client, address, path, ended) and exists
    return exists


def download_output(client: Any, name: str, output: str, folder: Path) -> bool:
    """Download an output of a job that has ended into the folder. Return False if the job has not written it.

    Raise InputError or AzureError.
    """
    with service_errors(f"downloading output {output} of {name}"), quiet_uploads():
        try:
            client.jobs.download(name, output_name=output, download_path=folder)
        except (internals.exceptions.MlException, internals.ResourceNotFoundError):
            return False
    return any(path.is_file() for path in folder.rglob("*"))


def cancel(client: Any, name: str) -> None:
    """Request the cancellation of the job, which takes some time. Raise InputError or AzureError.

    The SDK's poller is not started, because it would continue in a thread without a caller.
    """
    with service_errors(f"canceling {name}"):
        client.jobs.begin_cancel(name, polling=False)


def _is_safe(log: str) -> bool:
    path = PurePosixPath(log)
    return not path.is_absolute() and ".." not in path.parts and re.search(r"[\x00\\]", log) is None


def _append(client: Any, address: str, path: Path, ended: bool) -> bool:
    # The file is as long as the downloaded part of the log.
    size = path.stat().st_size if path.exists() else 0
    response = internals.requests(client).get(address, headers={"Range": f"bytes={size}-"} if size else {})
    if response.status_code == 404:
        return False  # not started
    if response.status_code == 416:
        return True  # nothing new
    if response.status_code not in (200, 206):
        raise internals.HttpResponseError(response=response)
    content = response.body()
    pieces = (content[start : start + _PIECE] for start in range(0, len(content), _PIECE))
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab" if response.status_code == 206 else "wb") as file:
        file.writelines(redacted(pieces, mask=same_length, complete=ended))
    return True


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


def update(client: Any, record: RunRecord) -> tuple[str, list[StepRecord]]:
    """Request the state of a run with its steps, and of the trials of its sweeps, and update the record.

    Return the service's status of the run, and the steps whose status has changed. Raise InputError or AzureError.
    """
    sweeps = [step for step in record.steps if step.kind == "sweep" and not step.status.ended]
    with service_errors(f"requesting the state of {record.id}"):
        details = internals.run_details(client, record.id)
        jobs = list(internals.child_runs(client, record.id)) if is_pipeline(record) else [details]
    changed = update_record(record, details, jobs)
    for sweep in sweeps:
        with service_errors(f"requesting the trials of {sweep.name}"):
            trials = list(internals.child_runs(client, sweep.mlflow_run_id)) if sweep.mlflow_run_id else []
        for job in trials:
            name = f"{sweep.name}.trial[{str(job.run_id).rpartition('_')[2]}]"  # SWEEP_0, SWEEP_1 and so on
            step = record.find(name) or _unplanned(record, name)
            changed += [step] if _is_changed(step, job) else []
    return str(details.status), changed


def update_record(record: RunRecord, details: Any, jobs: Sequence[Any]) -> list[StepRecord]:
    """Update the record from the run history of the run and of the jobs of its steps. Return the steps whose status has
    changed."""
    changed = [step for job, step in _matched(record, jobs) if _is_changed(step, job)]
    record.status, record.ended = run_status(str(details.status)), _moment(details.end_time_utc)
    failed = record.status is Status.FAILED and not any(step.verdict for step in record.steps)
    if failed and (error := _error(details)) and error not in record.notes:
        record.notes.append(error)
    return changed


def _is_changed(step: StepRecord, job: Any) -> bool:
    """Update a step from the run history of its job. Return whether its status has changed."""
    before, step.status = step.status, run_status(str(job.status))
    step.mlflow_run_id = str(job.run_id)
    step.started, step.ended = _moment(job.start_time_utc), _moment(job.end_time_utc)
    step.reused_from = (job.properties or {}).get(_REUSED) or None
    step.result = redact(str((job.tags or {}).get(_RESULT) or ""))
    if step.status is Status.FAILED:
        step.verdict = Verdict(step.name, _error(job) or "the service gives no reason")
    return step.status is not before


def _error(job: Any) -> str:
    return redact(str(getattr(getattr(job.error, "error", None), "message", "") or ""))


def _moment(moment: datetime | None) -> float | None:
    return moment.timestamp() if moment else None


def run_status(word: str) -> Status:
    """Return the status for the service's status. Its states before and after a job's execution are Running."""
    return _STATES.get(word, Status.RUNNING)


def _matched(record: RunRecord, jobs: Sequence[Any]) -> Iterator[tuple[Any, StepRecord]]:
    """Yield each job of the run with its step. The service names a step's job like the step, or by its display name."""
    if not is_pipeline(record):
        yield jobs[0], record.steps[0]
        return
    unmatched = {step.name: step for step in record.steps}
    for job in jobs:
        steps, identity, name = unmatched.values(), str(job.run_id), str(job.display_name or job.name or job.run_id)
        step = next((candidate for candidate in steps if candidate.mlflow_run_id == identity), None)
        step = step or unmatched.get(name)
        step = step or next((candidate for candidate in steps if candidate.display_name == name), None)
        if step is None:
            is_new = all(step.name != name for step in record.steps)
            step = _unplanned(record, name if is_new else identity)
        unmatched.pop(step.name, None)
        yield job, step


def _unplanned(record: RunRecord, name: str) -> StepRecord:
    """Add a step that the plan lacks: a trial, or a step of a kind that this machine cannot plan."""
    folder = Path(record.folder) / re.sub(r"[^\w.-]", "_", name)
    step = StepRecord(name, name, "", "", 1, 1, folder=str(folder))
    record.add(step)
    return step


def is_pipeline(record: RunRecord) -> bool:
    """Return whether the record is of a submitted pipeline, whose steps are separate jobs."""
    return record.submitted is not None and record.submitted.pipeline
