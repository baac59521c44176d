"""Keep the record of a submitted run up to date: once, or until the run has ended."""

from __future__ import annotations

import contextlib
import fcntl
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from allranks.azure import runs
from allranks.azure.errors import AzureError, service_errors
from allranks.azure.polling import Polling
from allranks.azure.rank_logs import download_logs
from allranks.azure.run_records import is_pipeline, update
from allranks.errors import InputError, Problem
from allranks.runs import history
from allranks.runs.records import RunRecord
from allranks.runs.store import Store
from allranks.runs.workspace import Workspace

if TYPE_CHECKING:
    from allranks.runs.observer import Observer

STOPPED = {
    "NotResponding": "its instances have stopped sending heartbeats",
    "Paused": "it is paused",
}
"""The states in which a run neither ends nor continues by itself, and after which the SDK's stream ends too."""


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
            download_logs(client, record)
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
