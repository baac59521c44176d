"""Run schedules when they are due, and handle missed firings.

The loop is our own: APScheduler 3.11 would replace its wait (about 15 lines) and needs an adapter of that size for our
triggers and signals. Tried, it dropped the firings that were due during a run instead of running them afterwards, and
after kill -9 between a run's start and the store's update it started the same firing again.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from enum import Enum
from itertools import takewhile

from allranks.local import stop_signals
from allranks.local.scheduler.ledger import CLAIMED, ENDED, Entry, Firing, Ledger, Missed, SchedulesPlace, run_name
from allranks.schedules.triggers import firings
from allranks.verdict import judge

LONGEST = 30.0
"""Maximum seconds of a wait, because the machine's clock may be changed, or a laptop suspended."""

GLANCE = 1.0
"""Seconds between polls of a run that an earlier scheduler started, whose end sends no signal."""

TOLERANCE = timedelta(seconds=60)
"""How late a run may start before its firing counts as missed."""


class SystemClock:
    """The machine's clock. Signals wake it. Use it as a context manager, on the main thread.

    stop: called on SIGINT, SIGTERM and SIGHUP
    """

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop

    def __enter__(self) -> SystemClock:
        self._receiver, self._sender = socket.socketpair()
        self._receiver.setblocking(False)
        self._sender.setblocking(False)
        self._wakeup = signal.set_wakeup_fd(self._sender.fileno(), warn_on_full_buffer=False)

        def stop(number: int, _: object) -> None:
            stop_signals.count(number)
            self._stop()

        self._handlers = {number: signal.signal(number, stop) for number in stop_signals.STOPS}
        # Only signals with a handler wake the scheduler.
        self._handlers[signal.SIGCHLD] = signal.signal(signal.SIGCHLD, lambda *_: None)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup)
        self._receiver.close()
        self._sender.close()

    def now(self) -> datetime:
        """Return the current time, with a time zone."""
        return datetime.now(timezone.utc)

    def wait(self, until: datetime | None, *, glance: bool) -> None:
        """Wait until a time, or until a signal arrives.

        until:  None if nothing is due
        glance: whether to return after GLANCE seconds at the latest, to poll
        """
        seconds = LONGEST if until is None else (until - self.now()).total_seconds()
        self.listen(min(max(seconds, 0.0), GLANCE if glance else LONGEST))

    def listen(self, seconds: float) -> None:
        """Wait for a signal, for at most `seconds`."""
        if select.select([self._receiver], [], [], seconds)[0]:
            self._receiver.recv(4096)


class MissedPolicy(str, Enum):
    """How to handle firings that were due while no scheduler or still the previous run was running."""

    SKIP = "skip"
    ONCE = "once"
    ALL = "all"


Starter = Callable[[Firing, int], "subprocess.Popen[bytes]"]
"""Starts the process of a firing's run. The process inherits the descriptor of its locked log."""


@dataclass(frozen=True)
class Line:
    """The state of a schedule.

    next:    time of the next firing; None if the schedule has ended
    latest:  its last claimed firing
    waiting: whether it is due, but its previous run has not ended
    """

    entry: Entry
    next: datetime | None
    latest: Firing | None
    waiting: bool


class Watcher:
    """Callbacks for events of the scheduler. They do nothing unless a subclass overrides them."""

    def state(self, lines: list[Line]) -> None:
        """Called with the states of the schedules after every pass."""

    def fired(self, firing: Firing) -> None:
        """Called when a firing's run has started."""

    def recovered(self, firing: Firing, *, alive: bool) -> None:
        """Called for a run of an earlier scheduler. alive: its process is still running; otherwise it is resumed."""

    def ended(self, firing: Firing) -> None:
        """Called when a run has ended, or has stopped together with the scheduler."""

    def missed(self, missed: Missed) -> None:
        """Called when firings are skipped."""

    def stopping(self, running: int) -> None:
        """Called when the scheduler stops. running: number of runs that stop with it."""


@dataclass(eq=False)
class Scheduler:
    """Run the schedules of the ledger until `stop` is called.

    overlap: whether a run starts although the previous run of its schedule has not ended
    """

    ledger: Ledger
    place: SchedulesPlace
    clock: SystemClock
    start: Starter
    watcher: Watcher
    missed: MissedPolicy = MissedPolicy.ONCE
    overlap: bool = False

    def __post_init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._running: dict[str, Firing] = {}
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._stops = 0

    def stop(self) -> None:
        """Make `run` stop its runs and return. The second call stops them immediately. Signal handlers may call it."""
        self._stops += 1

    def run(self) -> None:
        """Resume the runs of an earlier scheduler, then run what is due, until `stop` is called.

        When it returns, all processes that it started have ended.
        """
        self._recover()
        while not self._stops:
            self._reap()
            # `LocalClient` may have changed them.
            self._entries = {entry.name: entry for entry in self.ledger.schedules()}
            for name in self._entries:
                self._fire(name, self.clock.now())
            lines = [self._line(entry) for entry in self._entries.values()]
            self.watcher.state(lines)
            # A schedule that waits for its previous run is due when that run ends, not at a time.
            due = [line.next for line in lines if line.next is not None and not line.waiting]
            has_adopted = len(self._running) > len(self._children)
            self.clock.wait(min(due, default=None), glance=has_adopted)
        self._close()

    def _recover(self) -> None:
        now = self.clock.now()
        for firing in self.ledger.open():
            descriptor = self.place.take(firing.run)
            if descriptor is None:
                self._running[firing.run] = firing
                self.watcher.recovered(firing, alive=True)
            elif self.missed is MissedPolicy.SKIP and not (firing.state == CLAIMED and now - firing.at <= TOLERANCE):
                os.close(descriptor)
                self.ledger.end(firing.run, "Interrupted", "not resumed: --missed skip", now)
                self.watcher.ended(self.ledger.firing(firing.run))
            else:
                self.ledger.stopped(firing.run)
                self.watcher.recovered(firing, alive=False)
                self._begin(firing, descriptor)

    def _fire(self, name: str, now: datetime) -> None:
        """Start the runs of a schedule that are due and may start."""
        while True:
            entry = self._entries[name]
            chosen, skipped = self._choose(entry, now)
            missed = Missed(name, skipped[0], skipped[-1], len(skipped)) if skipped else None
            if chosen is None:
                if missed is not None:
                    self.ledger.miss(missed)
                    self.watcher.missed(missed)
                    self._entries[name] = replace(entry, cursor=missed.last)
                return
            busy = any(firing.schedule == name for firing in self._running.values())
            if busy and not (self.overlap and now - chosen <= TOLERANCE):
                return
            # A run that overlaps with another one gets its own workspace.
            overlaps = self.overlap and bool(self._running)
            workspace = self.place.own(run_name(name, chosen)) if overlaps else self.place.workspace
            firing = self.ledger.claim(name, chosen, workspace.root, missed)
            self._entries[name] = replace(entry, cursor=chosen)
            if missed is not None:
                self.watcher.missed(missed)
            if firing is None:
                continue
            descriptor = self.place.take(firing.run)
            if descriptor is not None:
                self._begin(firing, descriptor)
                self.watcher.fired(firing)

    def _choose(self, entry: Entry, now: datetime) -> tuple[datetime | None, list[datetime]]:
        """Return the firing to run now, if any, and the earlier firings to skip."""
        due = takewhile(lambda at: at <= now, firings(entry.trigger, entry.cursor, entry.created))
        if self.missed is MissedPolicy.ALL:
            return next(due, None), []
        skipped: list[datetime] = []
        for at in due:
            if self.missed is MissedPolicy.SKIP and now - at <= TOLERANCE:
                return at, skipped
            skipped.append(at)
        return (skipped.pop(), skipped) if skipped and self.missed is MissedPolicy.ONCE else (None, skipped)

    def _begin(self, firing: Firing, descriptor: int) -> None:
        try:
            self._children[firing.run] = self.start(firing, descriptor)
            self._running[firing.run] = firing
        finally:
            os.close(descriptor)

    def _reap(self) -> None:
        """Record the ends of the runs whose processes have ended."""
        for run, code in self._exited():
            if self.ledger.firing(run).state != ENDED:
                how = "" if code is None else f" (exit code {code})" if code >= 0 else f" ({judge.signal_name(-code)})"
                reason = f"its process ended before its run did{how}: allranks resume"
                self.ledger.end(run, "Interrupted", reason, self.clock.now())
            self.watcher.ended(self.ledger.firing(run))

    def _exited(self) -> Iterator[tuple[str, int | None]]:
        """Remove and yield the runs whose processes have ended, with the exit code of a child."""
        for run in list(self._running):
            child = self._children.get(run)
            code = None if child is None else child.poll()
            if (child is not None and code is None) or self._is_alive(run):
                continue
            del self._running[run]
            self._children.pop(run, None)
            yield run, code

    def _line(self, entry: Entry) -> Line:
        following = next(firings(entry.trigger, entry.cursor, entry.created), None)
        waiting = following is not None and following <= self.clock.now()
        return Line(entry, following, self.ledger.latest(entry.name), waiting)

    def _close(self) -> None:
        """Stop the runs. The next scheduler resumes them."""
        self._reap()
        if self._running:
            self.watcher.stopping(len(self._running))
        signals_sent = 0
        while self._running:
            if signals_sent < self._stops:
                signals_sent += 1
                self._signal_all()
            self.clock.wait(None, glance=True)
            for run, _ in self._exited():
                self.ledger.stopped(run)
                self.watcher.ended(self.ledger.firing(run))

    def _signal_all(self) -> None:
        for run in self._running:
            self.ledger.stop(run)
            child = self._children.get(run)
            if child is not None:
                child.send_signal(signal.SIGTERM)
            elif (pid := self.ledger.firing(run).pid) is not None and self._is_alive(run):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)

    def _is_alive(self, run: str) -> bool:
        descriptor = self.place.take(run)
        if descriptor is None:
            return True
        os.close(descriptor)
        return False
