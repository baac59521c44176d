"""Print the state of the local scheduler: one line per schedule, redrawn in place, on a terminal; else one line per
event."""

from __future__ import annotations

import json
from datetime import datetime, timezone

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from allranks.cli.views import STYLES
from allranks.history.formatting import NOTHING, SYMBOLS, clock, count, duration, plain
from allranks.history.records import Status
from allranks.local.scheduler.ledger import ENDED, Firing, Missed
from allranks.local.scheduler.scheduler import Line, Watcher
from allranks.schedules.triggers import zone


def view_of(console: Console, json: bool) -> EventLines:
    """Return the view for a console, or the one for programs. Use it as a context manager."""
    return LiveSchedules(console) if console.is_terminal and not json else EventLines(console, json)


class EventLines(Watcher):
    """Print events as lines: ``12:03:04  nightly  fires: run nightly-20260105T013000Z``.

    json: whether each line is a JSON object
    """

    def __init__(self, console: Console, json: bool = False) -> None:
        self._console = console
        self._json = json
        self._nexts: dict[str, datetime | None] = {}

    def __enter__(self) -> None:
        """Start drawing."""

    def __exit__(self, *_: object) -> None:
        """Stop drawing."""

    def state(self, lines: list[Line]) -> None:
        for line in lines:
            name, at = line.entry.name, line.next
            # A schedule that waits for a run has no next firing.
            if not line.waiting and self._nexts.get(name, ...) != at:
                self._nexts[name] = at
                self._print("next", name, f"next: {moment(at, line.entry.trigger.time_zone)}", at=at)

    def fired(self, firing: Firing) -> None:
        self._print("fired", firing.schedule, f"fires: run {firing.run}", run=firing.run, at=firing.at)

    def recovered(self, firing: Firing, *, alive: bool) -> None:
        event, how = ("alive", "is still running") if alive else ("resumed", "resumes where it was")
        self._print(event, firing.schedule, f"run {firing.run} {how}", run=firing.run, at=firing.at)

    def ended(self, firing: Firing) -> None:
        text = f"run {firing.run} stopped; it resumes with the next scheduler"
        if firing.state == ENDED:
            took = _took(firing)
            text = f"run {firing.run} {firing.status}" + (f" in {took}" if took else "")
            text += f": {firing.reason}" if firing.reason else ""
        status = firing.status or firing.state
        self._print("ended", firing.schedule, text, run=firing.run, status=status, reason=firing.reason)

    def missed(self, missed: Missed) -> None:
        first, last = (f"{at:%Y-%m-%d %H:%M}" for at in (missed.first, missed.last))
        which = first if missed.count == 1 else f"{missed.count:,} from {first} to {last}"
        text, times = f"missed, not run later: {which} UTC", {"first": missed.first, "last": missed.last}
        self._print("missed", missed.schedule, text, **times, count=missed.count)

    def stopping(self, running: int) -> None:
        text = f"stops, with {count(running, 'run')}; a second signal ends the ranks at once"
        self._print("stopping", "", text, runs=running)

    def _print(self, event: str, schedule: str, text: str, **values: object) -> None:
        if self._json:
            data = {"event": event, **({"schedule": schedule} if schedule else {}), **values}
            print(json.dumps(data, default=datetime.isoformat), flush=True)
            return
        now = clock(datetime.now(timezone.utc).timestamp())
        line = f"{now}  {schedule + '  ' if schedule else ''}{' '.join(plain(text).splitlines())}"
        self._console.print(Text(line), soft_wrap=True)


class LiveSchedules(EventLines):
    """Show one line per schedule on a terminal, and above it the runs that ended. Use it as a context manager."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self._lines: list[Line] = []
        self._running: dict[str, Firing] = {}
        self._stops = False
        self._live = Live(get_renderable=self._frame, console=console, refresh_per_second=2, transient=True)

    def __enter__(self) -> None:
        self._live.start(refresh=True)

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def state(self, lines: list[Line]) -> None:
        self._lines = lines

    def fired(self, firing: Firing) -> None:
        self._running = {**self._running, firing.run: firing}

    def recovered(self, firing: Firing, *, alive: bool) -> None:
        self._running = {**self._running, firing.run: firing}
        super().recovered(firing, alive=alive)

    def ended(self, firing: Firing) -> None:
        self._running = {run: other for run, other in self._running.items() if run != firing.run}
        super().ended(firing)

    def stopping(self, running: int) -> None:
        self._stops = True
        super().stopping(running)

    def _frame(self) -> Group:
        table = Table(box=None, pad_edge=False, padding=(0, 3, 0, 0))
        for title in ("schedule", "next", "in", "last run", ""):
            table.add_column(title, header_style="bright_black", no_wrap=title != "next")
        now = datetime.now(timezone.utc)
        for line in self._lines:
            wait = "" if line.next is None else duration((line.next - now).total_seconds(), whole=True)
            running = [firing for firing in self._running.values() if firing.schedule == line.entry.name]
            table.add_row(
                Text(plain(line.entry.name)),
                Text(moment(line.next, line.entry.trigger.time_zone)),
                Text("waits" if line.waiting else wait),
                Text(line.latest.run.removeprefix(f"{line.entry.name}-") if line.latest else NOTHING),
                _status(line.latest, running, now),
            )
        return Group(table, Text("  stopping ..." if self._stops else "  Ctrl-C stops", style="bright_black"))


def _status(latest: Firing | None, running: list[Firing], now: datetime) -> Text:
    if running:
        begun = min(firing.started or firing.at for firing in running)
        more = f" ({len(running)})" if len(running) > 1 else ""
        took = duration((now - begun).total_seconds(), whole=True)
        return Text(f"{SYMBOLS[Status.RUNNING]} Running{more}  {took}", style=STYLES[Status.RUNNING])
    if latest is None or latest.state != ENDED:
        return Text("" if latest is None else latest.state)
    status = Status(latest.status)
    return Text(f"{SYMBOLS[status]} {status}  {_took(latest)}".rstrip(), style=STYLES[status])


def moment(at: datetime | None, time_zone: str) -> str:
    """Return ``Mon 2026-01-05 02:30 CET``, or ``ended`` for a schedule without further firings."""
    return "ended" if at is None else f"{at.astimezone(zone(time_zone)):%a %Y-%m-%d %H:%M %Z}"


def _took(firing: Firing) -> str:
    if firing.started is None or firing.ended is None:
        return ""
    return duration((firing.ended - firing.started).total_seconds())
