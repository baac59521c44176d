"""The scheduler's files in a workspace, and their locks."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.runs.names import SCHEDULES
from allranks.runs.workspace import Workspace


@dataclass(frozen=True)
class SchedulesPlace:
    """Paths of the scheduler's files in a workspace."""

    workspace: Workspace

    @property
    def ledger(self) -> Path:
        return self.workspace.root / "schedules.db"

    @property
    def folder(self) -> Path:
        """The folder of the logs: one file per run, with the output of its process."""
        return self.workspace.root / SCHEDULES

    def secrets(self, schedule: str) -> Path:
        """Return the folder with the secrets of a schedule's plan. The ledger does not contain them."""
        return self.folder / "secrets" / schedule

    def log(self, run: str) -> Path:
        return self.folder / f"{run}.log"

    def own(self, run: str) -> Workspace:
        """Return a separate workspace for a run that overlaps with another one."""
        return Workspace(self.workspace.overlaps / run)

    def plans(self) -> list[str]:
        """Return the plans of all schedules, and of the runs that have a workspace of their own, as JSON."""
        from allranks.local.scheduler.ledger import Ledger
        from allranks.runs.store import Store

        texts = []
        if self.ledger.exists():
            with Ledger(self.ledger) as ledger:
                texts += [ledger.plan(schedule.name) for schedule in ledger.schedules()]
        for database in self.workspace.overlaps.glob("*/allranks.db"):
            with Store(database) as store:
                texts += [store.plan(run.id) for run in store.runs()]
        return texts

    def make(self) -> None:
        """Create the folders. Raise InputError on failure."""
        self.workspace.make()
        self.folder.mkdir(exist_ok=True)

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Context manager that locks the workspace for this scheduler. The kernel releases the lock when this process
        ends.

        Raise InputError, which names the process, if another scheduler has locked the workspace.
        """
        self.make()
        with open(self.workspace.root / "scheduler.lock", "a+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                pid = file.read().strip()
                found = "a scheduler has it already" + (f": process {pid}" if pid else "")
                fix = f"stop it (kill {pid}), or use another folder: --folder DIR"
                raise InputError(Problem(str(self.workspace.root), found, "one scheduler", fix)) from None
            file.seek(0)
            file.truncate()
            file.write(str(os.getpid()))
            file.flush()
            yield

    def take(self, run: str) -> int | None:
        """Open and lock the log of a run, and return its descriptor for the run's process to inherit. Return None if
        such a process is running.

        The lock belongs to all processes that have the descriptor. It is released when the last one ends.
        """
        descriptor = os.open(self.log(run), os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor
