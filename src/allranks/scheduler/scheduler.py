"""Run schedules when they are due, and handle missed firings.

The loop is our own: APScheduler 3.11 would replace its wait and needs an adapter of that size for our triggers and
signals. Tried, it dropped the firings that were due during a run instead of running them afterwards, and after kill -9
between a run's start and the store's update it started the same firing again.
"""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import takewhile

from allranks.scheduler.ledger import Entry, Firing, Ledger
from allranks.scheduler.running import CANCELED
from allranks.schedules.triggers import firings
from allranks.text import count, local_time
from allranks.verdict import judge

POLL = 0.5
"""Longest wait in seconds, because neither the end of a run nor a change of the machine's clock ends a wait."""


class Clock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the current time, with a time zone."""
        return datetime.now(UTC)

    def wait(self, until: datetime | None) -> None:
        """Wait until a time, for at most POLL seconds. until: None if nothing is due"""
        seconds = POLL if until is None else (until - self.now()).total_seconds()
        time.sleep(min(max(seconds, 0.0), POLL))


@dataclass(frozen=True)
class Event:
    """An event of the scheduler.

    kind:   next, fired, resumed, ended, missed, disabled, stopping, or stopped
    text:   a sentence for a reader
    values: the same data for a program
    """

    kind: str
    schedule: str
    text: str
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(eq=False)
class Scheduler:
    """Run the schedules of the ledger until `stop` is called.

    start:  starts the process of a firing's run
    report: called with each event
    only:   the names of the schedules to run; empty: all
    """

    ledger: Ledger
    start: Callable[[Firing], "subprocess.Popen[bytes]"]
    report: Callable[[Event], None]
    clock: Clock = field(default_factory=Clock)
    only: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._next: dict[str, datetime | None] = {}
        self._running: list[tuple[Firing, subprocess.Popen[bytes]]] = []
        self._stops = 0

    def stop(self) -> None:
        """Make `run` stop its runs and return. The second call stops them immediately. Signal handlers may call it."""
        self._stops += 1

    def run(self) -> None:
        """Resume the runs of an earlier scheduler, then run what is due, until `stop` is called.

        When it returns, all processes that it started have ended.
        """
        for firing in self._open():
            self._begin(firing, "resumed", f"run {firing.run} resumes")
        while not self._stops:
            self._reap()
            for firing in self._open():  # `allranks schedules trigger` may have added one
                if not self._is_running(firing.schedule):
                    self._begin(firing, "fired", f"starts now: run {firing.run}")
            for entry in self._schedules():
                self._fire(entry)
            self.clock.wait(self._following())
        self._close()

    def run_once(self, firing: Firing) -> None:
        """Run one firing, until it ends or `stop` is called."""
        self._begin(firing, "fired", f"starts now: run {firing.run}")
        while self._running and not self._stops:
            self.clock.wait(None)
            self._reap()
        self._close()

    def _schedules(self) -> list[Entry]:
        """Return the enabled schedules to run. Commands and `LocalClient` may change them at any time."""
        return [entry for entry in self.ledger.schedules() if not self.only or entry.name in self.only]

    def _open(self) -> list[Firing]:
        """Return the firings whose runs have neither ended nor started."""
        running = [firing for firing, _ in self._running]
        return [firing for firing in self.ledger.open() if firing not in running]

    def _is_running(self, schedule: str) -> bool:
        return any(firing.schedule == schedule for firing, _ in self._running)

    def _fire(self, entry: Entry) -> None:
        """Start the last run of a schedule that is due, unless an earlier one is running. Skip those before it."""
        now = self.clock.now()
        due = list(takewhile(lambda at: at <= now, firings(entry.trigger, entry.cursor, entry.created)))
        if not due or self._is_running(entry.name):
            return
        *missed, at = due
        firing = self.ledger.claim(entry.name, at)
        if missed:
            self._report_missed(entry.name, missed)
        if firing:
            self._begin(firing, "fired", f"fires: run {firing.run}")

    def _following(self) -> datetime | None:
        """Return when the next schedule fires, and report what has changed. A schedule that is due waits for its run,
        not for a time."""
        now, earliest = self.clock.now(), None
        entries = self._schedules()
        for name in self._next.keys() - {entry.name for entry in entries}:
            del self._next[name]
            self.report(Event("disabled", name, "disabled"))
        for entry in entries:
            at = next(firings(entry.trigger, entry.cursor, entry.created), None)
            if at is not None and at <= now:
                continue
            if self._next.get(entry.name, ...) != at:
                self._next[entry.name] = at
                text = f"next: {local_time(at) if at else 'ended'}"
                self.report(Event("next", entry.name, text, {"at": at}))
            if at is not None and (earliest is None or at < earliest):
                earliest = at
        return earliest

    def _begin(self, firing: Firing, kind: str, text: str) -> None:
        self._running.append((firing, self.start(firing)))
        self.report(Event(kind, firing.schedule, text, {"run": firing.run, "at": firing.at}))

    def _reap(self) -> None:
        """Record the ends of the runs whose processes have ended."""
        for run, code in self._pop_exited():
            if code == CANCELED:
                self.ledger.end(run, "Canceled", "")
            elif not self.ledger.firing(run).status:
                how = f"exit code {code}" if code >= 0 else judge.signal_name(-code)
                self.ledger.end(run, "Interrupted", f"its process ended before its run did ({how}): allranks resume")
            self._report_end(run)

    def _pop_exited(self) -> Iterator[tuple[str, int]]:
        """Remove and yield the runs whose processes have ended, with their exit codes."""
        for firing, process in list(self._running):
            if (code := process.poll()) is not None:
                self._running.remove((firing, process))
                yield firing.run, code

    def _close(self) -> None:
        """Stop the runs. The next scheduler resumes them."""
        self._reap()
        if self._running:
            text = f"stops, with {count(len(self._running), 'run')}; a second signal ends the ranks at once"
            self.report(Event("stopping", "", text, {"runs": len(self._running)}))
        signals_sent = 0
        while self._running:
            if signals_sent < self._stops:
                signals_sent += 1
                for _, process in self._running:
                    process.send_signal(signal.SIGTERM)
            self.clock.wait(None)
            for run, _ in self._pop_exited():
                self._report_end(run)
        if self._stops:
            self.report(Event("stopped", "", "the scheduler has stopped"))

    def _report_missed(self, schedule: str, missed: list[datetime]) -> None:
        first, last = map(local_time, (missed[0], missed[-1]))
        which = first if len(missed) == 1 else f"{len(missed):,} from {first} to {last}"
        values = {"first": missed[0], "last": missed[-1], "count": len(missed)}
        self.report(Event("missed", schedule, f"missed, not run later: {which}", values))

    def _report_end(self, run: str) -> None:
        firing = self.ledger.firing(run)
        text = f"run {run} stopped; it resumes with the next scheduler"
        if firing.status:
            text = f"run {run} {firing.status}" + (f": {firing.reason}" if firing.reason else "")
        values = {"run": run, "status": firing.status or "stopped", "reason": firing.reason}
        self.report(Event("ended", firing.schedule, text, values))
