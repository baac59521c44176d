"""Read the runs of a workspace without changing it, even while an engine uses it."""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Iterator
from itertools import islice

from allranks.errors import InputError, Problem
from allranks.history import locks
from allranks.history.records import RunRecord
from allranks.history.selection import EVERY_RUN, RunFilter, UnknownRunError
from allranks.history.store import Store, mark_interrupted
from allranks.history.workspace import Workspace


def runs(
    workspace: Workspace, limit: int | None = None, *, steps: bool = True, chosen: RunFilter = EVERY_RUN
) -> list[RunRecord]:
    """Return the runs, the newest first, without curves. A workspace that does not exist has none.

    limit:  how many at most
    steps:  whether the steps are read too, which may be thousands per run
    chosen: which runs
    """
    with contextlib.ExitStack() as stack:
        found = (_runs(stack, place, steps, chosen) for place in _places(workspace))
        newest_first = heapq.merge(*found, key=lambda record: record.created, reverse=True)
        return list(islice(newest_first, limit))


def run(workspace: Workspace, identity: str) -> RunRecord:
    """Return a run with its curves, by any of its names (see `selection.find`).

    Raise InputError if there is no such run, or several.
    """
    return find(workspace, identity)[1]


def load_usage(workspace: Workspace, record: RunRecord) -> None:
    """Load the samples of resource usage into the record of a run. By default, they are not loaded, to save time."""
    for place in _places(workspace):
        with Store(place.database, reads=True) as store:
            if store.has(record.id):
                store.load_usage(record)
                return


def find(workspace: Workspace, identity: str) -> tuple[Workspace, RunRecord]:
    """Return a run as `run` does, with the workspace that holds it: this one, or the separate one of a scheduled run
    that overlapped with another."""
    if not workspace.database.exists():
        found = f"there is no workspace in {workspace.root}"
        fix = "run a pipeline first, or name the folder: --folder DIR"
        raise InputError(Problem(f"run {identity}", found, "", fix, code="unknown-run"))
    unknown: list[UnknownRunError] = []
    for place in _places(workspace):
        with Store(place.database, reads=True) as store:
            try:
                return place, _with_true_state(store.run(identity), store, place)
            except UnknownRunError as error:
                unknown.append(error)
    raise unknown[0]


def _places(workspace: Workspace) -> list[Workspace]:
    """Return this workspace and those of overlapping runs, without those that have no store."""
    places = (workspace, *(Workspace(folder) for folder in sorted(workspace.overlaps.glob("*/"))))
    return [place for place in places if place.database.exists()]


def _runs(stack: contextlib.ExitStack, workspace: Workspace, steps: bool, chosen: RunFilter) -> Iterator[RunRecord]:
    store = stack.enter_context(Store(workspace.database, reads=True))
    for record in store.each_run(chosen, steps=steps):
        record = _with_true_state(record, store, workspace)
        if chosen.admits(record):
            yield record


def _with_true_state(run: RunRecord, store: Store, workspace: Workspace) -> RunRecord:
    # A submitted run continues without a local engine.
    if run.status.ended or run.submitted is not None or locks.holder(workspace.run_folder(run.id)) is not None:
        return run
    # Its engine records the end and then releases the lock, both perhaps since the record was read.
    if (newest := store.run(run.id)).status.ended:
        return newest
    mark_interrupted(run)
    return run
