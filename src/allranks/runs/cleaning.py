"""What a workspace can do without: old runs, snapshots that no run needs, folders that no run has. First as a plan."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from allranks.errors import InputError
from allranks.runs import locks
from allranks.runs.records import RunRecord
from allranks.runs.store import Store
from allranks.runs.workspace import Workspace

RECENT = 3600.0
"""Seconds in which a snapshot or a folder without a run stays: it may belong to a run that is about to start."""

RUN, SNAPSHOT, LEFTOVER = "run", "snapshot", "leftover"
"""Kinds of what is removed."""


@dataclass(frozen=True)
class Removal:
    """Something to remove.

    kind: RUN, SNAPSHOT or LEFTOVER
    name: a run's id, else the path relative to the workspace
    path: the folder
    size: bytes that it takes on the disk
    run:  the record of a RUN
    """

    kind: str
    name: str
    path: Path
    size: int
    run: RunRecord | None = None


@dataclass(frozen=True)
class KeptRun:
    """A run that is old enough to be removed, and the reason why it stays."""

    run: RunRecord
    reason: str


@dataclass(frozen=True)
class CleaningPlan:
    """What would be removed, and which old runs would stay."""

    removals: tuple[Removal, ...] = ()
    kept: tuple[KeptRun, ...] = ()

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
    """Return what can be removed. A workspace that does not exist has nothing.

    before:    runs that were created later stay; seconds since the epoch
    keep:      how many of the newest runs stay
    plans:     plans of others than this workspace's runs, as JSON, whose snapshots stay
    leftovers: folders that are known to be no longer used
    """
    if not workspace.database.exists():
        return CleaningPlan()
    now = time.time() if now is None else now
    with Store(workspace.database) as store:
        runs = store.runs()
        old = {run.id: run for run in runs[keep:] if run.created < before}
        reasons = _reasons(workspace, runs, old, store.registered_paths())
        removed = [run for run in old.values() if run.id not in reasons]
        gone = {run.id for run in removed}
        needed = [*plans, *(store.plan(run.id) for run in runs if run.id not in gone)]
    known = {run.id for run in runs}
    unknown = [
        folder for folder in _folders(workspace.runs, now) if folder.name not in known and locks.holder(folder) is None
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
    return CleaningPlan(tuple(removals), tuple(KeptRun(old[run], reason) for run, reason in reasons.items()))


def clean(workspace: Workspace, plan: CleaningPlan, remove: Callable[[Path], None] | None = None) -> list[Removal]:
    """Remove what the plan says, and return what was removed: what is used by now stays.

    remove: removes a folder as far as possible
    """
    remove = remove or (lambda folder: shutil.rmtree(folder, ignore_errors=True))
    removed = []
    with Store(workspace.database) as store:
        for removal in plan.removals:
            if removal.run is None:
                remove(removal.path)
            elif not _remove_run(workspace, store, removal.run, remove):
                continue
            removed.append(removal)
        store.vacuum()
    return removed


def size_of(path: Path) -> int:
    """Return the bytes that a folder takes on the disk. What a link leads to is not in it."""
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
    """By run, why it stays although it is old."""
    reasons: dict[str, str] = {}
    for run in old.values():
        if locks.holder(workspace.run_folder(run.id)) is not None:
            reasons[run.id] = "a process executes it"
        elif run.submitted is not None and not run.status.ended:
            reasons[run.id] = "it goes on in Azure ML"
    paths = [Path(path) for path in registered]
    for run in old.values():
        if any(workspace.run_folder(run.id) in path.parents for path in paths):
            reasons.setdefault(run.id, "data or a component in its folder is registered")
    users = [run for run in runs if run.id not in old or run.id in reasons]
    while users:  # a result that stays may itself stand on one
        user = users.pop()
        for step in user.steps:
            used = step.reused_from
            if used in old and used not in reasons and used != user.id:
                reasons[used] = f"run {user.id} reuses its results"
                users.append(old[used])
    return reasons


def _folders(parent: Path, now: float) -> list[Path]:
    """Return the folders in a folder that have not changed of late."""
    try:
        found = sorted(path for path in parent.iterdir() if path.is_dir() and not path.is_symlink())
        return [path for path in found if path.stat().st_mtime < now - RECENT]
    except FileNotFoundError:
        return []


def _removal(kind: str, workspace: Workspace, folder: Path) -> Removal:
    return Removal(kind, os.path.relpath(folder, workspace.root), folder, size_of(folder))
