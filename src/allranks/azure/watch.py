"""Keep the record and the logs of a submitted run up to date: once, or until the run has ended."""

from __future__ import annotations

import contextlib
import fcntl
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allranks.azure import runs
from allranks.azure.errors import AzureError, service_errors
from allranks.azure.polling import Polling
from allranks.azure.run_records import is_pipeline, update
from allranks.errors import InputError, Problem
from allranks.runs import history
from allranks.runs.log_reader import tail
from allranks.runs.records import RankRecord, RunRecord, StepRecord, Verdict
from allranks.runs.store import Store
from allranks.runs.workspace import Workspace

if TYPE_CHECKING:
    from allranks.runs.observer import Observer

STOPPED = {
    "NotResponding": "its instances have stopped sending heartbeats",
    "Paused": "it is paused",
}
"""The states in which a run neither ends nor continues by itself, and after which the SDK's stream ends too."""
_LOG = re.compile(
    r"user_logs/(?:retry_(?P<retry>\d+)/)?std_log(?:_process_(?P<rank>\d+)|_node_(?P<node>\d+)_\w+)?\.txt"
)


def finder(folder: Path | None) -> Callable[[str], RunRecord]:
    """Return a function that finds a run of the workspace folder, and updates a submitted one with its logs.

    That function raises InputError if there is no such run, and AzureError.
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
    """Yield a client for the Azure ML workspace of a submitted run."""
    from allranks.azure.workspace import WorkspaceOptions, connect
    from allranks.sdk import session

    where = record.submitted
    assert where is not None
    with session.session():
        with service_errors("signing in"):
            client = connect(WorkspaceOptions(where.subscription_id, where.resource_group, where.workspace_name))
        yield client


def refresh(client: Any, workspace: Workspace, record: RunRecord) -> None:
    """Update the record and the logs of its steps, and store them. Raise InputError or AzureError."""
    with _locked(workspace, record):
        state = runs.state(client, record.id, steps=is_pipeline(record))
        update(record, state)
        try:
            _download_logs(client, record)
        finally:
            _save(workspace, record)


def watch(client: Any, workspace: Workspace, record: RunRecord, watcher: Observer) -> None:
    """Report the changes of the run to the watcher until the run ends.

    Raise InputError or AzureError if the state cannot be requested for longer than `Polling` allows, and AzureError for
    a run that has stopped without an end.
    """
    watcher.started(record)
    polling = Polling()
    while not record.status.ended:
        changed = []
        try:
            state = runs.state(client, record.id, steps=is_pipeline(record))
            changed = update(record, state)
            polling.succeeded(changed=bool(changed))
        except (AzureError, InputError) as error:
            for note in polling.failed(error):
                watcher.noted(record, None, note)
        else:
            if reason := STOPPED.get(state.status):
                raise AzureError(_stopped(record, state.status, reason))
        for step in changed:
            watcher.changed(record, step)
        if changed:
            _save(workspace, record)
        if not record.status.ended:
            time.sleep(polling.delay)
    refresh(client, workspace, record)
    watcher.ended(record)


def _stopped(record: RunRecord, state: str, reason: str) -> Problem:
    fix = f"see the studio; then watch it again, or cancel it: allranks cancel {record.id}"
    return Problem(f"run {record.id}", f"Azure ML says {state}: {reason}", "a run that goes on", fix)


def _save(workspace: Workspace, record: RunRecord) -> None:
    with Store(workspace.database) as store:
        store.put_run(record)


@contextlib.contextmanager
def _locked(workspace: Workspace, record: RunRecord) -> Iterator[None]:
    """Prevent other processes from downloading the same logs at the same time."""
    path = workspace.runs / f"{record.id}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _download_logs(client: Any, record: RunRecord) -> None:
    """Download new parts of the logs of the run's steps, and update their ranks. Raise InputError or AzureError."""
    assert record.submitted is not None
    settled = set(record.submitted.settled)
    for step in record.steps:
        if step.mlflow_run_id is None or step.name in settled:
            continue
        ended = step.status.ended
        found = runs.logs(client, step.reused_from or step.mlflow_run_id)
        exist = runs.download(client, found, Path(step.folder), ended=ended)
        step.ranks = _ranks(step)
        if step.verdict is not None:
            step.verdict = _with_log(step, step.verdict)
        # A log that is listed and cannot be read is requested again by the next command.
        if ended and exist:
            settled.add(step.name)
    complete = record.status.ended and all(step.name in settled or not step.mlflow_run_id for step in record.steps)
    record.submitted = replace(record.submitted, settled=tuple(sorted(settled)), complete=complete)


def _ranks(step: StepRecord) -> list[RankRecord]:
    """Return the ranks of the last attempt, as far as the logs describe them."""
    logs_by_attempt: dict[int, list[tuple[int, str, Path]]] = {}
    folder = Path(step.folder)
    for path in sorted(folder.rglob("*.txt")):
        match = _LOG.fullmatch(path.relative_to(folder).as_posix())
        if match is not None:
            number = int(match["rank"] or match["node"] or 0)
            logs_by_attempt.setdefault(int(match["retry"] or 0), []).append((number, path.name, path))
    if not logs_by_attempt:
        return []
    step.attempt = max(logs_by_attempt)
    per_instance = max(step.process_count_per_instance, 1)
    return [
        RankRecord(
            rank=rank,
            instance_rank=rank // per_instance,
            local_rank=rank % per_instance,
            hostname="",
            status=step.status,
            started=step.started,
            ended=step.ended,
            log=str(path),
        )
        for rank, (_, _, path) in enumerate(sorted(logs_by_attempt[step.attempt]))
    ]


def _with_log(step: StepRecord, verdict: Verdict) -> Verdict:
    """Return the verdict with the tail of the first log that has a traceback, else of the first log."""
    tails = [(rank, tail(rank.log)) for rank in step.ranks]
    if not tails:
        return verdict
    raised = [(rank, lines) for rank, lines in tails if any(line.startswith("Traceback (") for line in lines)]
    rank, lines = (raised or tails)[0]
    known = bool(raised) or len(tails) == 1
    return replace(verdict, rank=rank.rank if known else None, log=rank.log, tail=lines)
