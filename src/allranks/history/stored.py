"""Read the runs of a workspace without changing it, even while an engine uses it."""

from __future__ import annotations

from itertools import islice

from allranks.errors import InputError, Problem
from allranks.history import locks, usage
from allranks.history.records import RunRecord
from allranks.history.selection import EVERY_RUN, RunFilter
from allranks.history.store import Store, mark_interrupted
from allranks.workspace import Workspace


def runs(
    workspace: Workspace, limit: int | None = None, *, steps: bool = True, chosen: RunFilter = EVERY_RUN
) -> list[RunRecord]:
    """Return the runs, the newest first, without curves. A workspace that does not exist has none.

    limit:  how many at most
    steps:  whether the steps are read too, which may be thousands per run
    chosen: which runs
    """
    if not workspace.database.exists():
        return []
    with Store(workspace.database, reads=True) as store:
        records = (_with_true_state(record, store, workspace) for record in store.each_run(chosen, steps=steps))
        return list(islice(filter(chosen.admits, records), limit))


def run(workspace: Workspace, identity: str) -> RunRecord:
    """Return a run with its curves, by any of its names (see `selection.find`).

    Raise InputError if there is no such run, or several.
    """
    if not workspace.database.exists():
        found = f"there is no workspace in {workspace.root}"
        fix = "run a pipeline first, or name the folder: --folder DIR"
        raise InputError(Problem(f"run {identity}", found, "", fix, code="unknown-run"))
    with Store(workspace.database, reads=True) as store:
        return _with_true_state(store.run(identity), store, workspace)


def load_usage(workspace: Workspace, record: RunRecord) -> None:
    """Load the samples of resource usage into the record of a run. By default, they are not loaded, to save time."""
    with Store(workspace.database, reads=True) as store:
        usage.load(store.connection, record)


def _with_true_state(run: RunRecord, store: Store, workspace: Workspace) -> RunRecord:
    # A submitted run continues without a local engine.
    if run.status.ended or run.submitted is not None or locks.holder(workspace.run_folder(run.id)) is not None:
        return run
    # Its engine records the end and then releases the lock, both perhaps since the record was read.
    if (newest := store.run(run.id)).status.ended:
        return newest
    mark_interrupted(run)
    return run
