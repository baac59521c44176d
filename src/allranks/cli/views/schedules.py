"""Print the state of the local scheduler: one line per schedule, redrawn in place, on a terminal; else one line per
event."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timezone

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.table import Table
from rich.text import Text

from allranks.cli.views.tables import STYLES
from allranks.local.scheduler.ledger import ENDED, Firing, Missed
from allranks.local.scheduler.scheduler import Line, Watcher
from allranks.runs.formatting import NOTHING, SYMBOLS, clock, count, duration, plain
from allranks.runs.records import Status
from allranks.schedules.firings import zone


def lines_for(console: Console) -> EventLines:
    """Return the view for a console. Use it as a context manager."""
    return LiveSchedules(console) if console.is_terminal else EventLines(console)


class _View(Watcher):
    """A view that is used as a context manager."""

    def __enter__(self) -> None:
        """Start drawing."""

    def __exit__(self, *_: object) -> None:
        """Stop drawing."""


class _Nexts:
    """Remembers the next firings that have been printed."""

    def __init__(self) -> None:
        self._printed: dict[str, datetime | None] = {}

    def new(self, lines: list[Line]) -> Iterator[Line]:
        """Yield the schedules whose next firing has not been printed. A schedule that waits for a run has none."""
        for line in lines:
            if not line.waiting and self._printed.get(line.entry.name, ...) != line.next:
                self._printed[line.entry.name] = line.next
                yield line


class EventLines(_View):
    """Print events as lines: ``12:03:04  nightly  fires: run nightly-20260105T013000Z``."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._nexts = _Nexts()

    def state(self, lines: list[Line]) -> None:
        for line in self._nexts.new(lines):
            self._line(line.entry.name, f"next: {moment(line.next, line.entry.trigger.time_zone)}")

    def fired(self, firing: Firing) -> None:
        self._line(firing.schedule, f"fires: run {firing.run}")

    def recovered(self, firing: Firing, *, alive: bool) -> None:
        how = "is still running" if alive else "resumes where it was"
        self._line(firing.schedule, f"run {firing.run} {how}")

    def ended(self, firing: Firing) -> None:
        self._line(firing.schedule, outcome(firing))

    def missed(self, missed: Missed) -> None:
        self._line(missed.schedule, missed_text(missed))

    def stopping(self, running: int) -> None:
        self._line("", f"stops, with {count(running, 'run')}; a second signal ends the ranks at once")

    def _line(self, name: str, text: str) -> None:
        now = clock(datetime.now(timezone.utc).timestamp())
        line = f"{now}  {name + '  ' if name else ''}{' '.join(plain(text).splitlines())}"
        self._console.print(Text(line), soft_wrap=True)


class JsonLines(_View):
    """Print each event as a JSON object on one line."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._nexts = _Nexts()

    def state(self, lines: list[Line]) -> None:
        for line in self._nexts.new(lines):
            self._write_event("next", schedule=line.entry.name, at=line.next)

    def fired(self, firing: Firing) -> None:
        self._write_event("fired", schedule=firing.schedule, run=firing.run, at=firing.at)

    def recovered(self, firing: Firing, *, alive: bool) -> None:
        self._write_event("alive" if alive else "resumed", schedule=firing.schedule, run=firing.run, at=firing.at)

    def ended(self, firing: Firing) -> None:
        status = firing.status or firing.state
        self._write_event("ended", schedule=firing.schedule, run=firing.run, status=status, reason=firing.reason)

    def missed(self, missed: Missed) -> None:
        self._write_event("missed", schedule=missed.schedule, first=missed.first, last=missed.last, count=missed.count)

    def stopping(self, running: int) -> None:
        self._write_event("stopping", runs=running)

    def _write_event(self, event: str, **values: object) -> None:
        self._write(json.dumps({"event": event, **values}, default=lambda value: value.isoformat()))


@dataclass
class _Table:
    """Renders the schedules when it is drawn."""

    lines: list[Line]
    running: dict[str, Firing]
    stopping: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
        for title in ("schedule", "next", "in", "last run", ""):
            table.add_column(title, header_style="bright_black", no_wrap=title != "next")
        now = datetime.now(timezone.utc)
        for line in self.lines:
            running = [firing for firing in self.running.values() if firing.schedule == line.entry.name]
            table.add_row(
                Text(plain(line.entry.name)),
                Text(moment(line.next, line.entry.trigger.time_zone)),
                Text("waits" if line.waiting else until(line.next, now)),
                Text(line.latest.run.removeprefix(f"{line.entry.name}-") if line.latest else NOTHING),
                self._status(line.latest, running, now),
            )
        yield table
        yield Text("  stopping ..." if self.stopping else "  Ctrl-C stops", style="bright_black")

    def _status(self, latest: Firing | None, running: list[Firing], now: datetime) -> Text:
        if running:
            begun = min(firing.started or firing.at for firing in running)
            more = f" ({len(running)})" if len(running) > 1 else ""
            took = duration((now - begun).total_seconds(), whole=True)
            return Text(f"{SYMBOLS[Status.RUNNING]} Running{more}  {took}", style=STYLES[Status.RUNNING])
        if latest is None or latest.state != ENDED:
            return Text("" if latest is None else latest.state)
        status = Status(latest.status)
        took = _took(latest)
        return Text(f"{SYMBOLS[status]} {status}  {took}".rstrip(), style=STYLES[status])


class LiveSchedules(EventLines):
    """Show one line per schedule on a terminal, and above it the runs that ended. Use it as a context manager."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._table = _Table([], {})
        self._live = Live(self._table, console=console, refresh_per_second=2, transient=True)

    def __enter__(self) -> None:
        self._live.start(refresh=True)

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def state(self, lines: list[Line]) -> None:
        self._table.lines = lines

    def fired(self, firing: Firing) -> None:
        self._table.running = {**self._table.running, firing.run: firing}

    def recovered(self, firing: Firing, *, alive: bool) -> None:
        self._table.running = {**self._table.running, firing.run: firing}
        super().recovered(firing, alive=alive)

    def ended(self, firing: Firing) -> None:
        self._table.running = {run: other for run, other in self._table.running.items() if run != firing.run}
        super().ended(firing)

    def stopping(self, running: int) -> None:
        self._table.stopping = True
        super().stopping(running)


def moment(at: datetime | None, time_zone: str) -> str:
    """Return ``Mon 2026-01-05 02:30 CET``, or ``ended`` for a schedule without further firings."""
    return "ended" if at is None else f"{at.astimezone(zone(time_zone)):%a %Y-%m-%d %H:%M %Z}"


def until(at: datetime | None, now: datetime) -> str:
    """Return the time until a moment as text, starting with ``in``."""
    return "" if at is None else duration((at - now).total_seconds(), whole=True)


def missed_text(missed: Missed) -> str:
    """Return the message for missed firings that are dropped."""
    if missed.count == 1:
        return f"missed, not made up for: {missed.first:%Y-%m-%d %H:%M} UTC"
    first, last = (f"{at:%Y-%m-%d %H:%M}" for at in (missed.first, missed.last))
    return f"missed, not made up for: {missed.count:,} from {first} to {last} UTC"


def outcome(firing: Firing) -> str:
    """Return the message for a run that ended or was stopped with its scheduler."""
    if firing.state != ENDED:
        return f"run {firing.run} stopped; it resumes with the next scheduler"
    took = _took(firing)
    text = f"run {firing.run} {firing.status}" + (f" in {took}" if took else "")
    return f"{text}: {firing.reason}" if firing.reason else text


def _took(firing: Firing) -> str:
    if firing.started is None or firing.ended is None:
        return ""
    return duration((firing.ended - firing.started).total_seconds())
