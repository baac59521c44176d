"""Run schedules when they are due, and handle missed firings.

The loop is our own: APScheduler 3.11 would replace its wait and needs an adapter of that size for our triggers and
signals. Tried, it dropped the firings that were due during a run instead of running them afterwards, and after kill -9
between a run's start and the store's update it started the same firing again.
"""

import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import takewhile

from allranks.errors import InputError
from allranks.history.records import Status
from allranks.scheduler import events
from allranks.scheduler.events import Event
from allranks.scheduler.ledger import Entry, Firing, Ledger
from allranks.scheduler.running import CANCELED
from allranks.schedules.policy import Policy
from allranks.schedules.triggers import firings
from allranks.text import count, local_time
from allranks.verdict import judge

POLL = 0.5
"""Longest wait in seconds, because neither the end of a run nor a change of the machine's clock ends a wait."""

_LOOK = timedelta(seconds=30)
"""Time between two looks at the data of a schedule, unless its shortest interval is shorter."""

_LONGEST = 7 * 86400
"""Maximum seconds until a retry."""


class Clock:
    """The machine's clock."""

    def now(self) -> datetime:
        """Return the current time, with a time zone."""
        return datetime.now(UTC)

    def wait(self, until: datetime | None) -> None:
        """Wait until a time, for at most POLL seconds. until: None if nothing is due"""
        seconds = POLL if until is None else (until - self.now()).total_seconds()
        time.sleep(min(max(seconds, 0.0), POLL))


@dataclass(eq=False)
class Scheduler:
    """Run the schedules of the ledger until `stop` is called.

    start:    starts the process of a firing's run
    report:   called with each event
    only:     the names of the schedules to run; empty: all
    look:     returns a digest of the data of a schedule with a data trigger; None if it is not known yet
    judge:    returns the events of an ended firing; takes it and the events of the firing before
    notifies: whether events are saved as notices
    """

    ledger: Ledger
    start: Callable[[Firing], "subprocess.Popen[bytes]"]
    report: Callable[[Event], None]
    clock: Clock = field(default_factory=Clock)
    only: frozenset[str] = frozenset()
    look: Callable[[Entry], str | None] = lambda _: None
    judge: Callable[[Firing, str], list[Event]] = lambda *_: []
    notifies: bool = False

    def __post_init__(self) -> None:
        self._next: dict[str, datetime | None] = {}
        self._looks: dict[str, tuple[datetime, str]] = {}  # the time of the next look, and the last one's result
        self._running: dict[str, tuple[Firing, subprocess.Popen[bytes]]] = {}  # by the run's name
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
            self._judge()
            for firing in self._open():  # `allranks schedules trigger` may have added one
                if firing.schedule not in [running.schedule for running, _ in self._running.values()]:
                    kind, text = ("retried", "is retried") if firing.retries else ("fired", "starts now")
                    self._begin(firing, kind, f"{text}: run {firing.run}")
            busy = {firing.schedule for firing in self.ledger.open()}  # their runs may also wait for a retry
            for entry in self._schedules():
                if entry.name not in busy:
                    (self._look if entry.policy.on_change else self._fire)(entry)
            self.clock.wait(self._following())
        self._close()

    def run_once(self, firing: Firing) -> None:
        """Run one firing, until it ends or `stop` is called."""
        self._begin(firing, "fired", f"starts now: run {firing.run}")
        while self._running and not self._stops:
            self.clock.wait(None)
            self._reap()
        self._close()
        if self.ledger.firing(firing.run).status:
            self.ledger.judge(firing.run, ())  # who started it has seen its end

    def _schedules(self) -> list[Entry]:
        """Return the enabled schedules to run. Commands and `LocalClient` may change them at any time."""
        return [entry for entry in self.ledger.schedules() if not self.only or entry.name in self.only]

    def _open(self) -> list[Firing]:
        """Return the firings whose runs are due and have neither ended nor started."""
        now = self.clock.now()
        found = (each for each in self.ledger.open() if each.run not in self._running)
        return [firing for firing in found if firing.due is None or firing.due <= now]

    def _fire(self, entry: Entry) -> None:
        """Start the last run of a schedule that is due. Skip those before it."""
        now = self.clock.now()
        due = list(takewhile(lambda at: at <= now, firings(entry.trigger, entry.cursor, entry.created)))
        if not due:
            return
        *missed, at = due
        event = events.of_missed(entry.name, missed) if missed else None
        firing = self.ledger.claim(entry.name, at, [event.notice()] if event and self.notifies else [])
        if event:
            self.report(event)
        if firing:
            self._begin(firing, "fired", f"fires: run {firing.run}")

    def _look(self, entry: Entry) -> None:
        """Start a run if the data differs from that of the last one, and has not changed since the look before."""
        now, interval = self.clock.now(), timedelta(seconds=entry.policy.shortest_interval)
        due, before = self._looks.setdefault(entry.name, (entry.last.at + interval if entry.last else now, ""))
        if now < due:
            return
        is_readable = True
        try:
            found = self.look(entry)
        except InputError as error:
            found, is_readable = str(error), False
            if found != before:
                self.report(Event("unreadable", entry.name, f"{found}; it is tried again", {"reason": found}))
        if found is None:
            return
        self._looks[entry.name] = now + min(_LOOK, interval), found
        if is_readable and found == before != entry.content:
            del self._looks[entry.name]
            if firing := self.ledger.claim(entry.name, now.replace(microsecond=0), content=found):
                self._begin(firing, "fired", f"fires, as {entry.policy.on_change} has changed: run {firing.run}")

    def _judge(self) -> None:
        """Retry the firings that have failed, or record the events of their ends."""
        # A process may outlive the end of its run a little.
        for firing in (each for each in self.ledger.ended() if each.run not in self._running):
            policies = {entry.name: entry.policy for entry in self.ledger.schedules(disabled=True)}
            policy = policies.get(firing.schedule, Policy())
            if firing.status in (Status.FAILED, Status.INTERRUPTED) and firing.retries < policy.retries:
                due = self.clock.now() + timedelta(seconds=min(policy.retry_after * 2**firing.retries, _LONGEST))
                self.ledger.retry(firing.run, due)
                text = f"run {firing.run} is retried at {local_time(due)} ({firing.retries + 1} of {policy.retries})"
                self.report(Event("retries", firing.schedule, text, {"run": firing.run, "at": due}))
                continue
            earlier = [each for each in self.ledger.firings(firing.schedule) if each.at < firing.at]
            before = [each.events for each in earlier if each.events is not None and each.status != Status.CANCELED]
            found = self.judge(firing, before[0] if before else "")
            notices = [event.notice() for event in found if self.notifies]
            self.ledger.judge(firing.run, (event.kind for event in found), notices)
            for event in found:
                if event.kind in (events.RECOVERED, events.REUSED):  # the others have been reported as its end
                    self.report(event)

    def _following(self) -> datetime | None:
        """Return when to look at the schedules again, and report what has changed. A schedule that is due waits for its
        run, not for a time."""
        now, entries = self.clock.now(), self._schedules()
        moments = [*(due for due, _ in self._looks.values()), *(firing.due for firing in self.ledger.open())]
        for name in self._next.keys() - {entry.name for entry in entries}:
            del self._next[name]
            self.report(Event("disabled", name, "disabled"))
        for entry in entries:
            is_timed = not entry.policy.on_change
            at = next(firings(entry.trigger, entry.cursor, entry.created), None) if is_timed else None
            if at is not None and at <= now:
                continue
            if self._next.get(entry.name, ...) != at:
                self._next[entry.name] = at
                text = (local_time(at) if at else "ended") if is_timed else str(entry.policy)
                self.report(Event("next", entry.name, f"next: {text}", {"at": at}))
            moments.append(at)
        return min((moment for moment in moments if moment and moment > now), default=None)

    def _begin(self, firing: Firing, kind: str, text: str) -> None:
        self._running[firing.run] = firing, self.start(firing)
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
        for run, (_, process) in list(self._running.items()):
            if (code := process.poll()) is not None:
                del self._running[run]
                yield run, code

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
                for _, process in self._running.values():
                    process.send_signal(signal.SIGTERM)
            self.clock.wait(None)
            for run, _ in self._pop_exited():
                self._report_end(run)
        if self._stops:
            self.report(Event("stopped", "", "the scheduler has stopped"))

    def _report_end(self, run: str) -> None:
        firing = self.ledger.firing(run)
        text = f"run {run} stopped; it resumes with the next scheduler"
        if firing.status:
            text = f"run {run} {firing.status}" + (f": {firing.reason}" if firing.reason else "")
        values = {"run": run, "status": firing.status or "stopped", "reason": firing.reason}
        self.report(Event("ended", firing.schedule, text, values))
