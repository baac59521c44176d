"""Remove what a workspace no longer needs: old runs, unused snapshots, and folders without a run."""

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from allranks.errors import InputError
from allranks.history import locks
from allranks.history.records import RunRecord
from allranks.history.store import Store
from allranks.workspace import Workspace

RECENT = 3600.0
"""Seconds for which a snapshot or a folder without a run stays: its run may be about to start."""

RUN, SNAPSHOT, LEFTOVER = "run", "snapshot", "leftover"


@dataclass(frozen=True)
class Removal:
    """A folder to remove. kind: RUN, SNAPSHOT or LEFTOVER. run: the record of a RUN"""

    kind: str
    path: Path
    run: RunRecord | None = None

    @cached_property
    def size(self) -> int:
        """Bytes of the folder on disk."""
        return size_of(self.path)


@dataclass(frozen=True)
class CleaningPlan:
    """The removals, and the old runs that stay, each with the reason."""

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
    plans:     plans, as JSON, other than those of this workspace's runs, whose snapshots stay
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
    unknown = [each for each in _folders(workspace.runs, now) if each.name not in run_ids and not locks.holder(each)]
    unused = [each for each in _folders(workspace.snapshots, now) if not any(each.name in plan for plan in needed)]
    removals = [Removal(RUN, workspace.run_folder(run.id), run) for run in removed]
    removals += [Removal(SNAPSHOT, folder) for folder in unused]
    removals += [Removal(LEFTOVER, folder) for folder in (*unknown, *leftovers)]
    return CleaningPlan(tuple(removals), tuple((old[run], reason) for run, reason in reasons.items()))


def clean(workspace: Workspace, plan: CleaningPlan, remove: Callable[[Path], None] | None = None) -> list[Removal]:
    """Remove the contents of the plan, except items that came into use meanwhile. Return the removed items.

    remove: removes a folder, ignoring errors
    """
    remove = remove or (lambda folder: shutil.rmtree(folder, ignore_errors=True))
    removed = [removal for removal in plan.removals if removal.run is None]
    for removal in removed:
        remove(removal.path)
    workspace.reserve.unlink(missing_ok=True)
    with Store(workspace.database) as store:
        runs = (removal for removal in plan.removals if removal.run is not None)
        removed += [removal for removal in runs if _remove_run(store, removal.path, remove)]
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


def _remove_run(store: Store, folder: Path, remove: Callable[[Path], None]) -> bool:
    """Remove a run from the store, and its folder, unless a process executes it or another run needs it."""
    with contextlib.suppress(InputError), locks.hold(folder):  # a process may have begun to execute it
        if store.remove_run(folder.name):
            remove(folder)
            return True
    return False


def _reasons(
    workspace: Workspace, runs: Sequence[RunRecord], old: dict[str, RunRecord], registered: Iterable[str]
) -> dict[str, str]:
    """Return the reason why each old run stays, by the run's id."""
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
    """Return the subfolders that have not changed recently."""
    try:
        folders = sorted(path for path in parent.iterdir() if path.is_dir() and not path.is_symlink())
        return [path for path in folders if path.stat().st_mtime < now - RECENT]
    except FileNotFoundError:
        return []
