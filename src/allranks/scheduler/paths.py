"""The files of a workspace's scheduler: the ledger, the lock, the logs and the secrets."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from allranks.errors import InputError, Problem
from allranks.history import stored
from allranks.history.records import RunRecord
from allranks.history.selection import SCHEDULES
from allranks.scheduler.ledger import CREATED, Entry, Ledger
from allranks.schedules.finding import Schedule
from allranks.workspace import Workspace

_T = TypeVar("_T")


@dataclass(frozen=True)
class SchedulerPaths:
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

    def record(self, run: str) -> RunRecord | None:
        """Return the record of a firing's run, without its steps; None if the run has not started."""
        runs = stored.runs(self.workspace, steps=False, unreadable=lambda *_: None)
        return next((each for each in runs if each.job_name == run), None)

    def log(self, run: str) -> Path:
        return self.folder / f"{run}.log"

    def created(self) -> list[Schedule]:
        """Return the enabled schedules that `LocalClient` has created."""
        entries = [entry for entry in self.entries().values() if entry.source == CREATED and entry.enabled]
        return [Schedule(entry.name, entry.name, "", entry.trigger, CREATED, policy=entry.policy) for entry in entries]

    def entries(self) -> dict[str, Entry]:
        """Return the schedules of the ledger by name, including those that a command has disabled."""
        return {entry.name: entry for entry in self.read(lambda ledger: ledger.schedules(disabled=True))}

    def read(self, query: Callable[[Ledger], list[_T]]) -> list[_T]:
        """Return what a function reads from the ledger; nothing if there is none."""
        if not self.ledger.exists():
            return []
        with Ledger(self.ledger) as ledger:
            return query(ledger)

    def scheduler(self) -> int | None:
        """Return the process id of the running scheduler; None if there is none."""
        with contextlib.suppress(FileNotFoundError), open(self._lock, encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return int(file.read().strip() or 0)
        return None

    @property
    def _lock(self) -> Path:
        return self.workspace.root / "scheduler.lock"

    def make(self) -> None:
        """Create the folders. Raise InputError on failure."""
        self.workspace.make()
        self.folder.mkdir(exist_ok=True)

    @contextlib.contextmanager
    def hold(self) -> Iterator[int]:
        """Lock the workspace for this scheduler and its runs, which inherit the yielded descriptor. The kernel releases
        the lock when the last of these processes ends.

        Wait for the runs of a scheduler that was killed. Raise InputError, which names the process, if another
        scheduler is running.
        """
        self.make()
        with open(self._lock, "a+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                pid = file.read().strip()
                if not pid or os.path.exists(f"/proc/{pid}"):
                    found = f"another scheduler is using it: process {pid or '?'}"
                    fix = f"stop it (kill {pid}), or use another folder: --folder DIR"
                    raise InputError(Problem(str(self.workspace.root), found, "one scheduler", fix)) from None
                fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            file.truncate()
            file.write(str(os.getpid()))
            file.flush()
            yield file.fileno()
