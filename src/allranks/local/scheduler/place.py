"""Where the scheduler's files are in a workspace, and who holds them."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from allranks.errors import InputError, Problem
from allranks.runs.workspace import Workspace


@dataclass(frozen=True)
class SchedulesPlace:
    """Names of what is in a workspace for the scheduler."""

    workspace: Workspace

    @property
    def ledger(self) -> Path:
        return self.workspace.root / "schedules.db"

    @property
    def folder(self) -> Path:
        """One file for each run: what its process says that is no step's."""
        return self.workspace.root / "schedules"

    def secrets(self, schedule: str) -> Path:
        """Return the folder of the secrets of a schedule's plan, which the ledger lacks."""
        return self.folder / "secrets" / schedule

    def log(self, run: str) -> Path:
        return self.folder / f"{run}.log"

    def own(self, run: str) -> Workspace:
        """Return a workspace for a run that begins while another one has this workspace."""
        return Workspace(self.workspace.root / "overlaps" / run)

    def make(self) -> None:
        """Make the folders. Raise InputError if they can't be made."""
        self.workspace.make()
        self.folder.mkdir(exist_ok=True)

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Keep other schedulers out; the kernel lets go when this process ends, however it ends.

        Raise InputError if another scheduler has the workspace, with the id of its process.
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
        """Return the run's log, open and locked, for its process to inherit; None where such a process is alive.

        The lock belongs to whoever has the descriptor: it is let go when the last of them has ended.
        """
        descriptor = os.open(self.log(run), os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor
