"""Keep the record and the logs of a submitted run up to date: once, or until the run has ended."""

import contextlib
import fcntl
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from allranks.azure import runs
from allranks.azure.errors import AzureError, NotFoundError, SignInError, service_errors
from allranks.azure.workspace import WorkspaceName, connect
from allranks.contract import logs
from allranks.errors import InputError, Problem
from allranks.history import stored
from allranks.history.log_reader import tail
from allranks.history.observer import Observer
from allranks.history.records import RankRecord, RunRecord, StepRecord, Verdict
from allranks.history.store import Store
from allranks.sdk import session
from allranks.verdict import judge
from allranks.workspace import Workspace

STOPPED = {"NotResponding": "its instances have stopped sending heartbeats", "Paused": "it is paused"}
"""States in which a run neither ends nor continues by itself. The SDK's stream ends after them too."""

POLL = 2.0
"""Seconds between two requests while the run changes."""

POLL_MAX = 30.0
"""Seconds between two requests while nothing changes, or while requests fail."""

PATIENCE = 5
"""Number of consecutive failed requests after which watching ends."""

UNKNOWN_PATIENCE = 12
"""The same number while run history does not have the run: it may return 404 for a minute after a job is accepted."""

SIGN_IN_PATIENCE = 120
"""The same number while the sign-in has expired: an hour, to sign in again in another terminal."""


class Polling:
    """When to request the state of a watched run again, and which failures end watching.

    delay: seconds until the next request
    """

    def __init__(self) -> None:
        self.delay = POLL
        self._known = False
        self._failures = 0
        self._noted = ""

    def succeeded(self, *, changed: bool) -> None:
        """Continue after a response. changed: whether the run has changed since the previous one"""
        self._known, self._failures, self._noted = True, 0, ""
        self.delay = POLL if changed else self._longer()

    def failed(self, error: AzureError | InputError) -> Iterator[str]:
        """Yield a note for the user if it differs from the previous one. Raise the error if it ends watching."""
        self._failures += 1
        if self._failures > self._patience(error):
            raise error
        self.delay = self._longer()
        problem = error.problem if isinstance(error, AzureError) else error.problems[0]
        fix = "; sign in again, and watching continues" if isinstance(error, SignInError) else ""
        if (note := f"{problem.found}{fix}") != self._noted:
            self._noted = note
            yield note

    def _patience(self, error: AzureError | InputError) -> int:
        if isinstance(error, AzureError):
            return PATIENCE
        if isinstance(error, SignInError):
            return SIGN_IN_PATIENCE
        return UNKNOWN_PATIENCE if isinstance(error, NotFoundError) and not self._known else 0

    def _longer(self) -> float:
        return min(self.delay * 1.5, POLL_MAX)


def finder(folder: Path | None) -> Callable[[str], RunRecord]:
    """Return a function that finds a run of the workspace folder, and updates a submitted run with its logs.

    That function raises InputError if there is no such run, and AzureError.
    """
    workspace = Workspace.at(folder)

    def find(identity: str) -> RunRecord:
        record = stored.run(workspace, identity)
        if record.submitted is not None and not record.submitted.complete:
            with connected(record) as client:
                refresh(client, workspace, record)
        return record

    return find


@contextlib.contextmanager
def connected(record: RunRecord) -> Iterator[Any]:
    """Yield a client for the Azure ML workspace of a submitted run."""
    where = record.submitted
    assert where is not None
    with session.session():
        with service_errors("signing in"):
            client = connect(WorkspaceName(where.subscription_id, where.resource_group, where.workspace_name))
        yield client


def refresh(client: Any, workspace: Workspace, record: RunRecord) -> None:
    """Update the record and the logs of its steps, and store them. Raise InputError or AzureError."""
    with _locked(workspace, record):
        runs.update(client, record)
        try:
            _download_logs(client, record)
        finally:
            _save(workspace, record)


def watch(client: Any, workspace: Workspace, record: RunRecord, watcher: Observer) -> None:
    """Report the changes of the run to the watcher until the run ends.

    Raise InputError or AzureError if the state cannot be requested for longer than `Polling` allows, and AzureError if
    the run has stopped without ending.
    """
    watcher.started(record)
    polling = Polling()
    while not record.status.ended:
        changed: list[StepRecord] = []
        try:
            status, changed = runs.update(client, record)
            polling.succeeded(changed=bool(changed))
        except (AzureError, InputError) as error:
            for note in polling.failed(error):
                watcher.noted(record, None, note)
        else:
            if reason := STOPPED.get(status):
                found = f"Azure ML says {status}: {reason}"
                fix = f"see the studio; then watch it again, or cancel it: allranks cancel {record.id}"
                raise AzureError(Problem(f"run {record.id}", found, "a run that continues", fix))
        for step in changed:
            watcher.changed(record, step)
        if changed:
            _save(workspace, record)
        if not record.status.ended:
            time.sleep(polling.delay)
    refresh(client, workspace, record)
    watcher.ended(record)


def _save(workspace: Workspace, record: RunRecord) -> None:
    with Store(workspace.database) as store:
        store.put_run(record)


@contextlib.contextmanager
def _locked(workspace: Workspace, record: RunRecord) -> Iterator[None]:
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
        # The next command requests a listed log again that could not be read.
        if ended and exist:
            settled.add(step.name)
    complete = record.status.ended and all(step.name in settled or not step.mlflow_run_id for step in record.steps)
    record.submitted = replace(record.submitted, settled=tuple(sorted(settled)), complete=complete)


def _ranks(step: StepRecord) -> list[RankRecord]:
    logs_by_attempt: dict[int, list[tuple[int, str, Path]]] = {}
    for path in sorted(Path(step.folder).glob(f"{logs.FOLDER}/**/std_log*.txt")):
        if numbers := logs.numbers_of(path):
            attempt, number = numbers
            logs_by_attempt.setdefault(attempt, []).append((number, path.name, path))
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
    """Return the verdict from the logs; if they show no failure, that of Azure ML with the tail of the first log."""
    found = judge.of_ranks(step.name, step.ranks, {})
    if found is not None:
        said = f"Azure ML: {verdict.reason}"
        return judge.with_advice(replace(found, consequences=(*found.consequences, said)))
    if not step.ranks:
        return verdict
    rank = step.ranks[0]
    return replace(verdict, rank=rank.rank if len(step.ranks) == 1 else None, log=rank.log, tail=tail(rank.log))
