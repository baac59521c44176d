"""Runs in Azure ML as records of runs, which the same code shows as those of this machine."""

from __future__ import annotations

import contextlib
import fcntl
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allranks.azure.errors import AzureError
from allranks.local.executor import processes_per_instance
from allranks.plan import codec
from allranks.plan.secrets import hidden
from allranks.runs import history
from allranks.runs.records import RankRecord, RunRecord, Status, StepRecord, Submission, Verdict
from allranks.runs.store import Store
from allranks.runs.workspace import Workspace

if TYPE_CHECKING:
    from allranks.azure.runs import JobState
    from allranks.azure.workspace import WorkspaceName
    from allranks.plan.graph import Plan
    from allranks.runs.observer import Observer

POLL = 2.0
"""Seconds between two questions how a run is."""

PATIENCE = 5
"""How many of them in a row may fail before nobody watches any more."""

_STATES = {
    "NotStarted": Status.NOT_STARTED,
    "Queued": Status.PREPARING,
    "Preparing": Status.PREPARING,
    "Provisioning": Status.PREPARING,
    "Starting": Status.PREPARING,
    "Completed": Status.COMPLETED,
    "Failed": Status.FAILED,
    "Canceled": Status.CANCELED,
}
_LOG = re.compile(
    r"user_logs/(?:retry_(?P<retry>\d+)/)?std_log(?:_process_(?P<rank>\d+)|_node_(?P<node>\d+)_\w+)?\.txt"
)


def remembered(
    workspace: Workspace, plan: Plan, name: str, where: WorkspaceName, studio: str, *, pipeline: bool
) -> RunRecord:
    """A new run with the service's name for it, kept in the workspace folder."""
    folder = workspace.runs / name
    record = RunRecord(
        id=name,
        name=plan.name,
        display_name=plan.display_name or plan.name,
        source=plan.source,
        instances=f"Azure ML {where.workspace_name}",
        created=time.time(),
        folder=str(folder),
        steps=[
            StepRecord(
                name=step.name,
                display_name=step.display_name or step.name,
                component=step.component,
                distribution=step.distribution.type,
                instance_count=step.instance_count,
                process_count_per_instance=processes_per_instance(step.distribution),
                needs=step.needs(),
                folder=str(folder / step.name),
            )
            for step in plan.steps
        ],
        submitted=Submission(where.subscription_id, where.resource_group, where.workspace_name, studio, pipeline),
    )
    workspace.make()
    with Store(workspace.database) as store:
        # It is never resumed, so nobody needs its secrets.
        store.add_run(record, hidden(codec.dumps(plan)).plan)
    return record


def finder(folder: Path | None) -> Callable[[str], RunRecord]:
    """Finds runs of the workspace folder: one that was submitted as it is now, with its logs.

    What it gives raises InputError where there is no such run, and AzureError.
    """
    workspace = Workspace.at(folder)

    def find(identity: str) -> RunRecord:
        record = history.run(workspace, identity)
        if record.submitted is not None and not record.submitted.complete:
            with connected(record) as client:
                refresh(client, workspace, record)
        return record

    return find


@contextlib.contextmanager
def connected(record: RunRecord) -> Iterator[Any]:
    """A client for the workspace that a submitted run is in."""
    from allranks.azure.errors import service_errors
    from allranks.azure.workspace import WorkspaceOptions, connect
    from allranks.sdk import session

    where = record.submitted
    assert where is not None
    with session.session():
        with service_errors("signing in"):
            client = connect(WorkspaceOptions(where.subscription_id, where.resource_group, where.workspace_name))
        yield client


def refresh(client: Any, workspace: Workspace, record: RunRecord) -> None:
    """Brings the record and the logs of its steps up to date, and keeps them. Raises InputError, AzureError."""
    from allranks.azure import runs

    with _alone(workspace, record):
        state = runs.state(client, record.id, steps=_is_pipeline(record))
        update(record, state)
        try:
            _download(client, record)
        finally:
            _keep(workspace, record)


def watch(client: Any, workspace: Workspace, record: RunRecord, watcher: Observer) -> None:
    """Tells the watcher what becomes of the run until it is over. Raises InputError, AzureError."""
    from allranks.azure import runs

    watcher.started(record)
    failures = 0
    while not record.status.ended:
        try:
            changed = update(record, runs.state(client, record.id, steps=_is_pipeline(record)))
            failures = 0
        except AzureError as error:
            failures += 1
            if failures > PATIENCE:
                raise
            watcher.noted(record, None, error.problem.found)
            changed = []
        for step in changed:
            watcher.changed(record, step)
        if changed:
            _keep(workspace, record)
        if not record.status.ended:
            time.sleep(POLL)
    refresh(client, workspace, record)
    watcher.ended(record)


def update(record: RunRecord, state: JobState) -> list[StepRecord]:
    """Takes over how the run is, and gives the steps that are in another state than before."""
    changed = []
    for job, step in _matched(record, state):
        before = step.status
        step.mlflow_run_id = job.name
        step.status = status(job.status)
        step.started, step.ended = job.started, job.ended
        step.reused_from = job.reused_from or None
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
    """The service's word for a state as one of ours: what it is busy with before and after a job is Running's."""
    return _STATES.get(word, Status.RUNNING)


def _matched(record: RunRecord, state: JobState) -> Iterator[tuple[JobState, StepRecord]]:
    """The jobs of the run with the steps that they are: the service calls a step's job by the step's name, or by the
    display name that it has been given."""
    if not _is_pipeline(record):
        yield state, record.steps[0]
        return
    left = {step.name: step for step in record.steps}
    for job in state.steps:
        step = next((one for one in left.values() if one.mlflow_run_id == job.name), None)
        step = step or left.get(job.display_name)
        step = step or next((one for one in left.values() if one.display_name == job.display_name), None)
        if step is None:
            step = _unplanned(record, job)
        left.pop(step.name, None)
        yield job, step


def _unplanned(record: RunRecord, job: JobState) -> StepRecord:
    """A step that the plan does not have: of a kind that cannot be planned here."""
    name = job.display_name if all(step.name != job.display_name for step in record.steps) else job.name
    folder = Path(record.folder) / re.sub(r"[^\w.-]", "_", name)
    step = StepRecord(name, name, "", "", 1, 1, folder=str(folder))
    record.steps.append(step)
    return step


def _download(client: Any, record: RunRecord) -> None:
    from allranks.azure import runs

    assert record.submitted is not None
    settled = set(record.submitted.settled)
    for step in record.steps:
        if step.mlflow_run_id is None or step.name in settled:
            continue
        over = step.status.ended
        runs.download(client, runs.logs(client, step.reused_from or step.mlflow_run_id), Path(step.folder))
        step.ranks = _ranks(step)
        if step.verdict is not None:
            step.verdict = _with_log(step, step.verdict)
        if over:
            settled.add(step.name)
    complete = record.status.ended and all(step.name in settled or not step.mlflow_run_id for step in record.steps)
    record.submitted = replace(record.submitted, settled=tuple(sorted(settled)), complete=complete)


def _ranks(step: StepRecord) -> list[RankRecord]:
    """The ranks by the logs that they have left, of the last attempt."""
    found: dict[int, list[tuple[int, str, Path]]] = {}
    folder = Path(step.folder)
    for path in sorted(folder.rglob("*.txt")):
        match = _LOG.fullmatch(path.relative_to(folder).as_posix())
        if match is not None:
            number = int(match["rank"] or match["node"] or 0)
            found.setdefault(int(match["retry"] or 0), []).append((number, path.name, path))
    if not found:
        return []
    step.attempt = max(found)
    each = max(step.process_count_per_instance, 1)
    return [
        RankRecord(
            rank=rank,
            instance_rank=rank // each,
            local_rank=rank % each,
            hostname="",
            status=step.status,
            started=step.started,
            ended=step.ended,
            log=str(path),
        )
        for rank, (_, _, path) in enumerate(sorted(found[step.attempt]))
    ]


def _with_log(step: StepRecord, verdict: Verdict) -> Verdict:
    """The verdict with the end of the log that tells most: the first with a traceback, else the first."""
    from allranks.local.step.verdict import tail

    tails = [(rank, tail(rank.log)) for rank in step.ranks]
    if not tails:
        return verdict
    raised = [(rank, lines) for rank, lines in tails if any(line.startswith("Traceback (") for line in lines)]
    rank, lines = (raised or tails)[0]
    known = bool(raised) or len(tails) == 1
    return replace(verdict, rank=rank.rank if known else None, log=rank.log, tail=lines)


def _keep(workspace: Workspace, record: RunRecord) -> None:
    with Store(workspace.database) as store:
        store.put_run(record)


@contextlib.contextmanager
def _alone(workspace: Workspace, record: RunRecord) -> Iterator[None]:
    """Keeps another process from downloading the same logs at the same time."""
    path = workspace.runs / f"{record.id}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _is_pipeline(record: RunRecord) -> bool:
    return record.submitted is not None and record.submitted.pipeline
