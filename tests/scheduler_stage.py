"""A scheduler's world: a clock that only goes when it waits, and runs that end when a test says so."""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

from allranks.scheduler.events import Event
from allranks.scheduler.ledger import Entry, Firing, Ledger
from allranks.scheduler.paths import SchedulerPaths
from allranks.scheduler.running import CANCELED
from allranks.scheduler.scheduler import Clock, Scheduler
from allranks.schedules.finding import Schedule
from allranks.schedules.policy import Policy
from allranks.schedules.triggers import Cron, Trigger
from allranks.workspace import Workspace

T0 = datetime(2026, 1, 1, tzinfo=UTC)
HOURLY = Cron("0 * * * *", start=datetime(2026, 1, 1, 0, 30))


def at(hours: float) -> datetime:
    return T0 + timedelta(hours=hours)


@dataclass
class Run:
    """A run's process that does nothing."""

    firing: Firing
    begun: datetime
    code: int | None = None
    signals: list[int] = field(default_factory=list)

    def poll(self) -> int | None:
        return self.code

    def send_signal(self, number: int) -> None:
        self.signals.append(number)


class Stage(Clock):
    """A scheduler's world: its clock, its runs, the data that it looks at, how runs end, and what it said."""

    def __init__(self, folder: Path, length: float = 0.1) -> None:
        self.place = SchedulerPaths(Workspace(folder))
        self.place.make()
        self.time = T0
        self.length = timedelta(hours=length)
        self.runs: list[Run] = []
        self.said: list[Event] = []
        self.until = T0
        self.data = ""
        self.outcomes: list[str] = []
        self.scheduler: Scheduler

    def now(self) -> datetime:
        return self.time

    def wait(self, until: datetime | None) -> None:
        """The clock goes to what happens first: a firing, a run's end, or the end of this part of the test."""
        ends = [run.begun + self.length for run in self.runs if run.code is None]
        stopping = any(run.signals for run in self.runs if run.code is None)
        first = min([moment for moment in (until, self.until, *ends) if moment is not None])
        if not stopping:
            self.time = max(first, self.time)
        for run in self.runs:
            if run.code is None and (run.signals or run.begun + self.length <= self.time):
                outcome = self.outcomes.pop(0) if self.outcomes and not run.signals else "Completed"
                self.end(run, *(("", CANCELED) if run.signals else (outcome,)))
        if self.time >= self.until and not stopping:
            self.scheduler.stop()

    def end(self, run: Run, status: str, code: int = 0) -> None:
        with Ledger(self.place.ledger) as ledger:
            if status:
                ledger.end(run.firing.run, status, "")
        run.code = code

    def start(self, firing: Firing) -> Run:
        self.runs.append(Run(firing, self.time))
        return self.runs[-1]

    def look(self, _: Entry) -> str:
        return self.data

    def judge(self, firing: Firing, before: str) -> list[Event]:
        values = {"at": firing.at, "run": firing.run}
        return [Event(f"{firing.status} after {before or 'nothing'}".replace(" ", "-"), firing.schedule, "", values)]

    def keep(self, policy: Policy | None = None, **triggers: Trigger) -> None:
        with Ledger(self.place.ledger) as ledger:
            schedules = [
                Schedule(name, name, "", trigger, "", policy=policy or Policy()) for name, trigger in triggers.items()
            ]
            ledger.replace([(schedule, "{}", self.data) for schedule in schedules], self.time)

    def go(self, hours: float, *only: str) -> list[str]:
        """A scheduler's life until then; what it started, as hours: schedule@hour, +hour where it began later."""
        before = len(self.runs)
        self.until = at(hours)
        with Ledger(self.place.ledger) as ledger:
            self.scheduler = Scheduler(
                ledger, self.start, self.said.append, self, frozenset(only), self.look, self.judge, notifies=True
            )
            self.scheduler.run()
        return [shown(run) for run in self.runs[before:]]


def shown(run: Run) -> str:
    due, begun = ((moment - T0) / timedelta(hours=1) for moment in (run.firing.at, run.begun))
    return f"{run.firing.schedule}@{due:g}" + (f"+{begun:g}" if begun != due else "")
