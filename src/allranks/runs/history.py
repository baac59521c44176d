"""Read the runs of a workspace without changing it, even while an engine uses it."""

from __future__ import annotations

from allranks.errors import InputError, Problem
from allranks.runs import locks
from allranks.runs.records import RunRecord
from allranks.runs.store import Store, mark_interrupted
from allranks.runs.workspace import Workspace


def runs(workspace: Workspace, limit: int | None = None, *, steps: bool = True) -> list[RunRecord]:
    """Return every run, the newest first, without curves. A workspace that does not exist has none.

    limit: how many at most
    steps: whether the steps are read too, which may be thousands per run
    """
    if not workspace.database.exists():
        return []
    with Store(workspace.database) as store:
        return [_with_true_state(run, workspace) for run in store.runs(limit, steps=steps)]


def run(workspace: Workspace, identity: str) -> RunRecord:
    """Return a run with its curves. identity: its id, the first characters of it, or "latest". Raise InputError if
    there is no such run."""
    if not workspace.database.exists():
        raise InputError(
            Problem(
                f"run {identity}",
                f"there is no workspace in {workspace.root}",
                "",
                "run a pipeline first, or give the folder: --folder DIR",
            )
        )
    with Store(workspace.database) as store:
        return _with_true_state(store.run(identity), workspace)


def _with_true_state(run: RunRecord, workspace: Workspace) -> RunRecord:
    # A submitted run continues without a local engine.
    if not run.status.ended and run.submitted is None and locks.holder(workspace.run_folder(run.id)) is None:
        mark_interrupted(run)
    return run
