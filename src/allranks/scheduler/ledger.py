"""The ledger: the schedules and their firings, in one SQLite file.

Every change is one transaction. A firing is claimed, and its schedule's cursor moved past it, before its run starts.
The run's name consists of the schedule's name and the time, so a firing can be claimed only once. What happened is
written together with the notices about it, which are removed when they have been answered."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta

from allranks.history.database import Database, transaction
from allranks.schedules.finding import Schedule
from allranks.schedules.policy import Policy
from allranks.schedules.triggers import Trigger, dumps, loads

# Times are in UTC, in ISO 8601. active: 1; -1 if a command has disabled it; 0 if no file declares it any more, or
# LocalClient has disabled it. due: when the next retry begins. events: NULL until the end of the run has been judged.
TABLES = """
CREATE TABLE schedule (name TEXT PRIMARY KEY, source TEXT NOT NULL, trigger TEXT NOT NULL, plan TEXT NOT NULL, created
TEXT NOT NULL, cursor TEXT NOT NULL, policy TEXT NOT NULL, content TEXT NOT NULL, active INTEGER NOT NULL) STRICT;
CREATE TABLE firing (run TEXT PRIMARY KEY, schedule TEXT NOT NULL, at TEXT NOT NULL, status TEXT NOT NULL DEFAULT '',
reason TEXT NOT NULL DEFAULT '', retries INTEGER NOT NULL DEFAULT 0, due TEXT NOT NULL DEFAULT '', events TEXT) STRICT;
CREATE TABLE notice (id TEXT PRIMARY KEY, body TEXT NOT NULL) STRICT;
"""

Notices = Iterable[tuple[str, str]]
"""The ids of notices, and their texts."""

CREATED = "LocalClient"
"""The source of a schedule that no file declares. Reading files does not change such a schedule."""


@dataclass(frozen=True)
class Entry:
    """A schedule of the ledger.

    created: the time at which it was first read with this trigger
    cursor:  firings up to this time have been run or skipped
    content: digest of the data at the last firing, or when it was first read; "" without a data trigger
    last:    the latest firing; None if it has not fired
    """

    name: str
    source: str
    trigger: Trigger
    created: datetime
    cursor: datetime
    policy: Policy = field(default_factory=Policy)
    content: str = ""
    enabled: bool = True
    last: "Firing | None" = None


@dataclass(frozen=True)
class Firing:
    """One firing and its run.

    run:     the run's name
    at:      the time of the firing
    status:  the run's; "" for one that has not ended, which the next scheduler resumes
    retries: how many times it has been retried
    due:     when the latest retry begins; None without one
    events:  the notices about its end, separated by blanks; None until it has been judged
    """

    run: str
    schedule: str
    at: datetime
    status: str
    reason: str
    retries: int = 0
    due: datetime | None = None
    events: str | None = None


def run_name(schedule: str, at: datetime) -> str:
    """Return the name of a firing's run, such as ``nightly-20260105T013000Z``."""
    return f"{schedule}-{at.astimezone(UTC):%Y%m%dT%H%M%SZ}"


class Ledger(Database):
    """An open ledger."""

    kind = "ledger of schedules"
    tables = TABLES
    version = 3
    # A claim is on disk before its run starts, so it is not repeated after a power failure.
    synchronous = "FULL"

    def replace(self, schedules: Iterable[tuple[Schedule, str, str]], now: datetime) -> None:
        """Replace the active schedules that files declare. A schedule whose trigger has not changed keeps its cursor;
        all others start now. A disabled one stays disabled. schedules: each with its plan as JSON and its content"""
        with transaction(self.connection):
            disabled = {entry.name for entry in self.schedules(disabled=True) if not entry.enabled}
            self.connection.execute("UPDATE schedule SET active = 0 WHERE source != ? AND active = 1", (CREATED,))
            for item, plan, content in schedules:
                self._put(item, plan, content, now, -1 if item.name in disabled else 1)

    def put(self, schedule: Schedule, plan: str | None, content: str, now: datetime, *, enabled: bool) -> None:
        """Add a schedule, or change it. One that was not enabled starts now. plan: as JSON; None to keep it"""
        with transaction(self.connection):
            self.connection.execute(
                "UPDATE schedule SET cursor = ? WHERE name = ? AND NOT active", (now.isoformat(), schedule.name)
            )
            self._put(schedule, self.plan(schedule.name) if plan is None else plan, content, now, int(enabled))

    def _put(self, item: Schedule, plan: str, content: str, now: datetime, active: int) -> None:
        second, trigger = now.replace(microsecond=0), dumps(item.trigger)
        existing = self.connection.execute(
            "SELECT created, cursor FROM schedule WHERE name = ? AND trigger = ?", (item.name, trigger)
        ).fetchone()
        # One microsecond earlier, because a recurrence without a start fires at its creation, which is a full second.
        created, cursor = existing or (second.isoformat(), (second - timedelta(microseconds=1)).isoformat())
        self.connection.execute(
            "INSERT OR REPLACE INTO schedule VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (item.name, item.where, trigger, plan, created, cursor, json.dumps(asdict(item.policy)), content, active),
        )

    def switch(self, schedule: str, now: datetime, *, on: bool) -> None:
        """Enable or disable a schedule. One that is enabled starts now."""
        self.connection.execute(
            "UPDATE schedule SET active = ?, cursor = max(cursor, ?) WHERE name = ?",
            (1 if on else -1, now.isoformat() if on else "", schedule),
        )

    def plans(self) -> list[str]:
        """Return the plans of all schedules as JSON."""
        return [plan for (plan,) in self.connection.execute("SELECT plan FROM schedule WHERE active")]

    def schedules(self, *, disabled: bool = False) -> list[Entry]:
        """Return the active schedules by name. disabled: also those that a command has disabled"""
        rows = self.connection.execute(
            "SELECT name, source, trigger, created, cursor, policy, content, active FROM schedule WHERE active"
            " ORDER BY name"
        ).fetchall()
        return [
            Entry(
                name, source, loads(trigger), datetime.fromisoformat(created), datetime.fromisoformat(cursor),
                Policy(**json.loads(policy)), content, active > 0,
                next(self._firings("WHERE schedule = ? ORDER BY at DESC LIMIT 1", name), None),
            )
            for name, source, trigger, created, cursor, policy, content, active in rows
            if disabled or active > 0
        ]  # fmt: skip

    def plan(self, schedule: str) -> str:
        (plan,) = self.connection.execute("SELECT plan FROM schedule WHERE name = ?", (schedule,)).fetchone()
        return str(plan)

    def claim(self, schedule: str, at: datetime, notices: Notices = (), content: str = "") -> Firing | None:
        """Claim a firing, and move the schedule's cursor to it. Return None if it was already claimed.

        notices: about the firings that were missed before it
        content: digest of the data that it runs on
        """
        with transaction(self.connection):
            self.connection.execute(
                "UPDATE schedule SET cursor = ?, content = ? WHERE name = ?", (at.isoformat(), content, schedule)
            )
            self._add_notices(notices)
            return self.add(schedule, at)

    def add(self, schedule: str, at: datetime) -> Firing | None:
        """Add a firing, and return it; None if there is one of that time."""
        run = run_name(schedule, at)
        inserted = self.connection.execute(
            "INSERT OR IGNORE INTO firing (run, schedule, at) VALUES (?, ?, ?)", (run, schedule, at.isoformat())
        )
        return self.firing(run) if inserted.rowcount else None

    def firing(self, run: str) -> Firing:
        """Return the firing of that run, which must exist."""
        return next(self._firings("WHERE run = ?", run))

    def firings(self, schedule: str) -> list[Firing]:
        """Return all firings of a schedule, the latest first."""
        return list(self._firings("WHERE schedule = ? ORDER BY at DESC", schedule))

    def open(self) -> list[Firing]:
        """Return the firings whose runs have not ended, the earliest first. Some of them may wait for a retry."""
        return list(self._firings("WHERE status = '' ORDER BY at, run"))

    def end(self, run: str, status: str, reason: str) -> None:
        """Record the end of a run."""
        self.connection.execute("UPDATE firing SET status = ?, reason = ? WHERE run = ?", (status, reason, run))

    def ended(self) -> list[Firing]:
        """Return the firings whose runs have ended and have not been judged, the earliest first."""
        return list(self._firings("WHERE status != '' AND events IS NULL ORDER BY at, run"))

    def retry(self, run: str, due: datetime) -> None:
        """Reopen a firing, whose run resumes at a time."""
        change = "UPDATE firing SET status = '', reason = '', retries = retries + 1, due = ? WHERE run = ?"
        self.connection.execute(change, (due.isoformat(), run))

    def judge(self, run: str, events: Iterable[str], notices: Notices = ()) -> None:
        """Record the events of an ended firing, with the notices about them."""
        with transaction(self.connection):
            self.connection.execute("UPDATE firing SET events = ? WHERE run = ?", (" ".join(events), run))
            self._add_notices(notices)

    def notices(self) -> dict[str, str]:
        """Return the notices that have not been answered, by id, the earliest first."""
        return dict(self.connection.execute("SELECT id, body FROM notice ORDER BY rowid").fetchall())

    def remove(self, notice: str) -> None:
        """Remove a notice, which has been answered or given up."""
        self.connection.execute("DELETE FROM notice WHERE id = ?", (notice,))

    def _add_notices(self, notices: Notices) -> None:
        self.connection.executemany("INSERT OR IGNORE INTO notice VALUES (?, ?)", notices)

    def _firings(self, condition: str, *values: object) -> Iterator[Firing]:
        columns = "run, schedule, at, status, reason, retries, due, events"
        rows = self.connection.execute(f"SELECT {columns} FROM firing {condition}", values)
        for run, schedule, at, status, reason, retries, due, events in rows:
            moment = datetime.fromisoformat(due) if due else None
            yield Firing(run, schedule, datetime.fromisoformat(at), status, reason, retries, moment, events)
