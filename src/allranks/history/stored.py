"""Read the runs of a workspace without changing it, even while an engine uses it."""

from collections.abc import Callable, Container
from itertools import islice

from allranks.errors import InputError, Problem
from allranks.history import locks
from allranks.history.records import RunRecord, Status
from allranks.history.store import Store, mark_interrupted
from allranks.workspace import Workspace


def runs(
    workspace: Workspace,
    limit: int | None = None,
    *,
    statuses: Container[Status] = tuple(Status),
    since: float = 0.0,
    steps: bool = True,
    unreadable: Callable[[str, str], object] | None = None,
) -> list[RunRecord]:
    """Return the runs, the newest first, without curves. A workspace that does not exist has no runs.

    limit:      maximum number of runs
    statuses:   those of the runs
    since:      when the first one was created, in seconds since the epoch
    steps:      whether to read the steps too, which may be thousands per run
    unreadable: as for `Store.each_run`. Without it, raise InputError for a damaged run
    """
    if not workspace.database.exists():
        return []
    with Store(workspace.database, reads=True) as store:
        found = store.each_run(since=since, steps=steps, unreadable=unreadable)
        records = (_with_true_state(run, store, workspace) for run in found)
        return list(islice((run for run in records if run.status in statuses), limit))


def run(workspace: Workspace, identity: str, *, curves: bool = True) -> RunRecord:
    """Return a run, by default with its curves, by any name that `selection.find` accepts.

    Raise InputError if no run, or several runs, have this name.
    """
    if not workspace.database.exists():
        found = f"there is no workspace in {workspace.root}"
        fix = "run a pipeline first, or name the folder: --folder DIR"
        raise InputError(Problem(f"run {identity}", found, "", fix, code="unknown-run"))
    with Store(workspace.database, reads=True) as store:
        return _with_true_state(store.run(identity, curves=curves), store, workspace)


def load_usage(workspace: Workspace, record: RunRecord) -> None:
    """Load the samples of resource usage into the record of a run, which is read without them to save time."""
    with Store(workspace.database, reads=True) as store:
        store.load_usage(record)


def _with_true_state(run: RunRecord, store: Store, workspace: Workspace) -> RunRecord:
    # A submitted run continues without a local engine.
    if run.status.ended or run.submitted is not None or locks.holder(workspace.run_folder(run.id)) is not None:
        return run
    # Since the record was read, its engine may have recorded the end and released the lock.
    if (newest := store.run(run.id)).status.ended:
        return newest
    mark_interrupted(run)
    return run
