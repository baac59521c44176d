"""Remove the unused contents of a workspace: old runs, unused snapshots, and folders without a run."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from allranks.errors import InputError
from allranks.history import locks
from allranks.history.records import RunRecord
from allranks.history.store import Store
from allranks.workspace import Workspace

RECENT = 3600.0
"""Seconds for which a snapshot or a folder without a run stays, because its run may be about to start."""

RUN, SNAPSHOT, LEFTOVER = "run", "snapshot", "leftover"
"""Kinds of removals."""


@dataclass(frozen=True)
class Removal:
    """A folder to remove.

    kind: RUN, SNAPSHOT or LEFTOVER
    name: a run's id, else the path relative to the workspace
    path: the folder
    size: its bytes on disk
    run:  the record of a RUN
    """

    kind: str
    name: str
    path: Path
    size: int
    run: RunRecord | None = None


@dataclass(frozen=True)
class CleaningPlan:
    """What would be removed, and which old runs would stay, each with the reason."""

    removals: tuple[Removal, ...] = ()
    kept: tuple[tuple[RunRecord, str], ...] = ()

    @property
    def size(self) -> int:
        """Bytes that are freed."""
        return sum(removal.size for removal in self.removals)


def plan_cleaning(
    workspace: Workspace,
    *,
    before: float,
    keep: int = 0,
    plans: Iterable[str] = (),
    leftovers: Sequence[Path] = (),
    now: float | None = None,
) -> CleaningPlan:
    """Return what can be removed; nothing if the workspace does not exist.

    before:    runs that were created later stay; seconds since the epoch
    keep:      how many of the newest runs stay
    plans:     other plans than those of this workspace's runs, as JSON, whose snapshots stay
    leftovers: folders that are known to be unused
    """
    if not workspace.database.exists():
        return CleaningPlan()
    now = time.time() if now is None else now
    with Store(workspace.database, reads=True) as store:
        runs = list(store.each_run())
        old = {run.id: run for run in runs[keep:] if run.created < before}
        reasons = _reasons(workspace, runs, old, store.registered_paths())
        removed = [run for run in old.values() if run.id not in reasons]
        removed_ids = {run.id for run in removed}
        needed = [*plans, *(store.plan(run.id) for run in runs if run.id not in removed_ids)]
    run_ids = {run.id for run in runs}
    unknown = [
        folder
        for folder in _folders(workspace.runs, now)
        if folder.name not in run_ids and locks.holder(folder) is None
    ]
    unused = [
        folder for folder in _folders(workspace.snapshots, now) if not any(folder.name in plan for plan in needed)
    ]
    removals = [
        *(Removal(RUN, run.id, workspace.run_folder(run.id), size_of(workspace.run_folder(run.id)), run)
          for run in removed),
        *(_removal(SNAPSHOT, workspace, folder) for folder in unused),
        *(_removal(LEFTOVER, workspace, folder) for folder in (*unknown, *leftovers)),
    ]  # fmt: skip
    return CleaningPlan(tuple(removals), tuple((old[run], reason) for run, reason in reasons.items()))


def clean(workspace: Workspace, plan: CleaningPlan, remove: Callable[[Path], None] | None = None) -> list[Removal]:
    """Remove the contents of the plan, except items in use by now. Return the removed items.

    remove: removes a folder; errors are ignored
    """
    remove = remove or (lambda folder: shutil.rmtree(folder, ignore_errors=True))
    removed = [removal for removal in plan.removals if removal.run is None]
    for removal in removed:
        remove(removal.path)
    workspace.reserve.unlink(missing_ok=True)
    with Store(workspace.database) as store:
        for removal in plan.removals:
            if removal.run is None or not _remove_run(workspace, store, removal.run, remove):
                continue
            removed.append(removal)
        store.vacuum()
    return removed


def size_of(path: Path) -> int:
    """Return the bytes of a folder on disk, without the targets of links."""
    total = 0
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * 512
            except OSError:
                continue  # it has just been removed
    return total


def _remove_run(workspace: Workspace, store: Store, run: RunRecord, remove: Callable[[Path], None]) -> bool:
    """Remove a run from the store and its folder, unless a process executes it or another run needs it."""
    folder = workspace.run_folder(run.id)
    try:
        with locks.hold(folder):
            if not store.remove_run(run.id):
                return False
            remove(folder)
    except InputError:  # a process has begun to execute it
        return False
    return True


def _reasons(
    workspace: Workspace, runs: Sequence[RunRecord], old: dict[str, RunRecord], registered: Iterable[str]
) -> dict[str, str]:
    """Return the reason why a run stays although it is old, by its id."""
    reasons: dict[str, str] = {}
    for run in old.values():
        if locks.holder(workspace.run_folder(run.id)) is not None:
            reasons[run.id] = "a process executes it"
        elif run.submitted is not None and not run.status.ended:
            reasons[run.id] = "it continues on Azure ML"
    paths = [Path(path) for path in registered]
    for run in old.values():
        if any(workspace.run_folder(run.id) in path.parents for path in paths):
            reasons.setdefault(run.id, "data or a component in its folder is registered")
    users = [run for run in runs if run.id not in old or run.id in reasons]
    while users:  # a run that stays may itself reuse results of others
        user = users.pop()
        for step in user.steps:
            source_run = step.reused_from
            if source_run in old and source_run not in reasons and source_run != user.id:
                reasons[source_run] = f"run {user.id} reuses its results"
                users.append(old[source_run])
    return reasons


def _folders(parent: Path, now: float) -> list[Path]:
    """Return the folders in a folder that have not changed recently."""
    try:
        folders = sorted(path for path in parent.iterdir() if path.is_dir() and not path.is_symlink())
        return [path for path in folders if path.stat().st_mtime < now - RECENT]
    except FileNotFoundError:
        return []


def _removal(kind: str, workspace: Workspace, folder: Path) -> Removal:
    return Removal(kind, os.path.relpath(folder, workspace.root), folder, size_of(folder))
