"""The ledger: the schedules and their firings, in one SQLite file.

Every change is one transaction. A firing is claimed, and its schedule's cursor moved past it, before its run starts.
The run's name consists of the schedule's name and the time, so a firing can be claimed only once."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from allranks.errors import InputError, Problem
from allranks.history.database import Database, transaction
from allranks.history.selection import SCHEDULES
from allranks.history.store import Store
from allranks.history.workspace import Workspace
from allranks.schedules.triggers import Trigger, dumps, loads

if TYPE_CHECKING:
    from allranks.schedules.finding import Schedule


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
        texts = []
        if self.ledger.exists():
            with Ledger(self.ledger) as ledger:
                texts += [ledger.plan(schedule.name) for schedule in ledger.schedules()]
        for database in self.workspace.overlaps.glob("*/allranks.db"):
            with Store(database) as store:
                texts += [store.plan(run.id) for run in store.runs()]
        return texts

    def created(self) -> list[Schedule]:
        """Return the enabled schedules that `LocalClient` has created."""
        from allranks.schedules.finding import Schedule

        if not self.ledger.exists():
            return []
        with Ledger(self.ledger) as ledger:
            entries = [entry for entry in ledger.schedules() if entry.source == CREATED]
        return [Schedule(entry.name, entry.display_name, "", entry.trigger, CREATED) for entry in entries]

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
                found = "another scheduler is using it" + (f": process {pid}" if pid else "")
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
        descriptor = os.open(self.log(run), os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor


# Times are integers: microseconds since the epoch.
TABLES = """
CREATE TABLE schedule (name TEXT PRIMARY KEY, position INTEGER NOT NULL, display_name TEXT NOT NULL, source TEXT NOT
NULL, trigger TEXT NOT NULL, plan TEXT NOT NULL, created INTEGER NOT NULL, cursor INTEGER NOT NULL, active INTEGER NOT
NULL) STRICT;
CREATE TABLE firing (run TEXT PRIMARY KEY, schedule TEXT NOT NULL, at INTEGER NOT NULL, state TEXT NOT NULL,
workspace TEXT NOT NULL, status TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '', attempts INTEGER NOT NULL
DEFAULT 0, pid INTEGER, started INTEGER, ended INTEGER) STRICT;
CREATE INDEX firing_of_schedule ON firing (schedule, at);
CREATE TABLE missed (schedule TEXT NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, count INTEGER NOT NULL)
STRICT;
"""

CREATED = "LocalClient"
"""The source of a schedule that no file declares. It stays when files are read."""

CLAIMED, RUNNING, STOPPING, STOPPED, ENDED = "claimed", "running", "stopping", "stopped", "ended"
"""The states of a firing. Stopping: its run was asked to stop together with the scheduler. Stopped: it has stopped, and
the next scheduler resumes it."""

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_FIRING = "SELECT run, schedule, at, state, workspace, status, reason, attempts, pid, started, ended FROM firing"


@dataclass(frozen=True)
class Entry:
    """A schedule of the ledger.

    created: the time at which it was first read with this trigger
    cursor:  firings up to this time have been run or counted as missed
    """

    name: str
    display_name: str
    source: str
    trigger: Trigger
    created: datetime
    cursor: datetime


@dataclass(frozen=True)
class Firing:
    """One firing and its run.

    run:       the run's name
    at:        the time of the firing
    workspace: the folder of the workspace in which it runs
    status:    the run's, once it has ended
    """

    run: str
    schedule: str
    at: datetime
    state: str
    workspace: str
    status: str = ""
    reason: str = ""
    attempts: int = 0
    pid: int | None = None
    started: datetime | None = None
    ended: datetime | None = None


@dataclass(frozen=True)
class Missed:
    """Consecutive firings that were skipped."""

    schedule: str
    first: datetime
    last: datetime
    count: int


def run_name(schedule: str, at: datetime) -> str:
    """Return the name of a firing's run, such as ``nightly-20260105T013000Z``."""
    return f"{schedule}-{at.astimezone(timezone.utc):%Y%m%dT%H%M%SZ}"


class Ledger(Database):
    """An open ledger."""

    kind = "ledger of schedules"
    tables = TABLES
    version = 1
    # A claim is on disk before its run starts, so it is not repeated after a power failure.
    synchronous = "FULL"

    def replace(self, schedules: Iterable[tuple[Schedule, str]], now: datetime) -> None:
        """Replace the active schedules that files declare. A schedule whose trigger has not changed keeps its cursor;
        all others start now. schedules: each with its plan as JSON"""
        with transaction(self.connection):
            self.connection.execute("UPDATE schedule SET active = 0 WHERE source != ?", (CREATED,))
            for position, (item, plan) in enumerate(schedules):
                self._put(item, plan, now, position)

    def put(self, schedule: Schedule, plan: str | None, now: datetime, *, enabled: bool) -> None:
        """Add a schedule, or change it. One that was not enabled starts now. plan: as JSON; None to keep it"""
        with transaction(self.connection):
            if not any(entry.name == schedule.name for entry in self.schedules()):
                self.connection.execute("UPDATE schedule SET cursor = ? WHERE name = ?", (_number(now), schedule.name))
            self._put(schedule, self.plan(schedule.name) if plan is None else plan, now, 0)
            if not enabled:
                self.disable(schedule.name)

    def disable(self, schedule: str) -> None:
        """Start no more runs of a schedule."""
        self.connection.execute("UPDATE schedule SET active = 0 WHERE name = ?", (schedule,))

    def _put(self, item: Schedule, plan: str, now: datetime, position: int) -> None:
        second, trigger = _number(now.replace(microsecond=0)), dumps(item.trigger)
        existing = self.connection.execute(
            "SELECT created, cursor FROM schedule WHERE name = ? AND trigger = ?", (item.name, trigger)
        ).fetchone()
        # One microsecond earlier, because a recurrence without a start fires at its creation, which is a full second.
        created, cursor = existing or (second, second - 1)
        self.connection.execute(
            "INSERT OR REPLACE INTO schedule VALUES (?, ?, ?, ?, ?, ?, ?, ?, 1)",
            (item.name, position, item.display_name, item.where, trigger, plan, created, cursor),
        )

    def schedules(self) -> list[Entry]:
        """Return the active schedules, in the order in which they were declared."""
        rows = self.connection.execute(
            "SELECT name, display_name, source, trigger, created, cursor FROM schedule WHERE active ORDER BY position"
        )
        return [
            Entry(name, display_name, source, loads(trigger), _moment(created), _moment(cursor))
            for name, display_name, source, trigger, created, cursor in rows
        ]

    def plan(self, schedule: str) -> str:
        (plan,) = self.connection.execute("SELECT plan FROM schedule WHERE name = ?", (schedule,)).fetchone()
        return str(plan)

    def claim(self, schedule: str, at: datetime, workspace: Path, missed: Missed | None = None) -> Firing | None:
        """Claim a firing, and move the schedule's cursor past it and past the skipped firings.

        Return None if it was already claimed.
        """
        run = run_name(schedule, at)
        with transaction(self.connection):
            if missed is not None:
                self._miss(missed)
            self.connection.execute("UPDATE schedule SET cursor = ? WHERE name = ?", (_number(at), schedule))
            inserted = self.connection.execute(
                "INSERT OR IGNORE INTO firing (run, schedule, at, state, workspace) VALUES (?, ?, ?, ?, ?)",
                (run, schedule, _number(at), CLAIMED, str(workspace)),
            )
        return self.firing(run) if inserted.rowcount else None

    def miss(self, missed: Missed) -> None:
        """Record skipped firings, and move the schedule's cursor past them."""
        with transaction(self.connection):
            self._miss(missed)
            self.connection.execute(
                "UPDATE schedule SET cursor = ? WHERE name = ?", (_number(missed.last), missed.schedule)
            )

    def _miss(self, missed: Missed) -> None:
        row = (missed.schedule, _number(missed.first), _number(missed.last), missed.count)
        self.connection.execute("INSERT INTO missed VALUES (?, ?, ?, ?)", row)

    def missed(self, schedule: str) -> list[Missed]:
        """Return a schedule's skipped firings in chronological order."""
        rows = self.connection.execute(
            "SELECT schedule, first, last, count FROM missed WHERE schedule = ? ORDER BY first", (schedule,)
        )
        return [Missed(name, _moment(first), _moment(last), count) for name, first, last, count in rows]

    def firing(self, run: str) -> Firing:
        """Return the firing of that run. Raise KeyError if it does not exist."""
        for firing in self._firings("WHERE run = ?", run):
            return firing
        raise KeyError(run)

    def open(self) -> list[Firing]:
        """Return the firings whose runs have not ended, the earliest first."""
        return list(self._firings("WHERE state != ? ORDER BY at, run", ENDED))

    def latest(self, schedule: str) -> Firing | None:
        """Return the schedule's last claimed firing; None if there is none."""
        return next(self._firings("WHERE schedule = ? ORDER BY at DESC LIMIT 1", schedule), None)

    def firings(self, schedule: str) -> list[Firing]:
        """Return all claimed firings of a schedule, the earliest first."""
        return list(self._firings("WHERE schedule = ? ORDER BY at", schedule))

    def begin(self, run: str, pid: int, now: datetime) -> Firing | None:
        """Record that the process of a run has started. Return its firing, or None if the run has already ended."""
        # A run that was asked to stop before it started stays in that state.
        updated = self.connection.execute(
            "UPDATE firing SET state = CASE state WHEN ? THEN state ELSE ? END, pid = ?, attempts = attempts + 1,"
            " started = coalesce(started, ?)"
            " WHERE run = ? AND state != ?",
            (STOPPING, RUNNING, pid, _number(now), run, ENDED),
        )
        return self.firing(run) if updated.rowcount else None

    def stop(self, run: str) -> None:
        """Record that a run will be asked to stop. The next scheduler resumes it."""
        self.connection.execute("UPDATE firing SET state = ? WHERE run = ? AND state != ?", (STOPPING, run, ENDED))

    def stopped(self, run: str) -> None:
        self.connection.execute("UPDATE firing SET state = ? WHERE run = ? AND state != ?", (STOPPED, run, ENDED))

    def end(self, run: str, status: str, reason: str, now: datetime) -> None:
        """Record the end of a run. A run that was canceled because its scheduler stopped counts as stopped instead."""
        if status == "Canceled" and self.firing(run).state == STOPPING:
            self.stopped(run)
            return
        self.connection.execute(
            "UPDATE firing SET state = ?, status = ?, reason = ?, ended = ? WHERE run = ? AND state != ?",
            (ENDED, status, reason, _number(now), run, ENDED),
        )

    def _firings(self, condition: str, *values: object) -> Iterator[Firing]:
        cursor = self.connection.execute(f"{_FIRING} {condition}", values)
        names = [column for column, *_ in cursor.description]
        for row in cursor.fetchall():
            found = dict(zip(names, row, strict=True))
            times = {name: found[name] for name in ("at", "started", "ended") if found[name] is not None}
            yield Firing(**found | {name: _moment(number) for name, number in times.items()})


def _number(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1)


def _moment(number: int) -> datetime:
    return _EPOCH + timedelta(microseconds=number)
