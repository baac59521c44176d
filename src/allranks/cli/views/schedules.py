"""Print the events of the local scheduler, a line each."""

from __future__ import annotations

import json
from datetime import datetime, timezone

from rich.console import Console
from rich.text import Text

from allranks.history.formatting import clock, count, duration, plain
from allranks.local.scheduler.ledger import ENDED, Firing, Missed
from allranks.local.scheduler.scheduler import Line, Watcher
from allranks.schedules.triggers import zone


class EventLines(Watcher):
    """Print events as lines: ``12:03:04  nightly  fires: run nightly-20260105T013000Z``.

    json: whether each line is a JSON object
    """

    def __init__(self, console: Console, json: bool = False) -> None:
        self._console = console
        self._json = json
        self._nexts: dict[str, datetime | None] = {}

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


def moment(at: datetime | None, time_zone: str) -> str:
    """Return ``Mon 2026-01-05 02:30 CET``, or ``ended`` for a schedule without further firings."""
    return "ended" if at is None else f"{at.astimezone(zone(time_zone)):%a %Y-%m-%d %H:%M %Z}"


def _took(firing: Firing) -> str:
    if firing.started is None or firing.ended is None:
        return ""
    return duration((firing.ended - firing.started).total_seconds())
