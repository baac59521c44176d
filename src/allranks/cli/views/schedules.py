"""Print schedules, their state, and what happens to them."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from json import dumps
from typing import Any

from allranks.azure.schedules import Applied, trigger_differs
from allranks.cli.console import console
from allranks.cli.views import print_whole, table_of
from allranks.history import stored
from allranks.history.records import RunRecord
from allranks.history.run_columns import main_metrics
from allranks.scheduler.events import Event
from allranks.scheduler.ledger import Entry, Firing
from allranks.scheduler.paths import SchedulerPaths
from allranks.schedules.finding import Schedule
from allranks.schedules.triggers import firings, in_words
from allranks.text import NOTHING, clock, local_time, number, plain


def print_event(as_json: bool, event: Event) -> None:
    """Print ``12:03:04  nightly  fires: run nightly-20260105T013000Z``, or a line of JSON."""
    if as_json:
        data = {"event": event.kind, **({"schedule": event.schedule} if event.schedule else {}), **event.values}
        print(dumps(data, default=datetime.isoformat), flush=True)
        return
    line = "  ".join(part for part in (clock(time.time()), event.schedule, event.text) if part)
    console().print(" ".join(plain(line).splitlines()), soft_wrap=True, markup=False, highlight=False)


@dataclass(frozen=True)
class Past:
    """A firing of a schedule: its run, if it has started, and the model's version that was the champion afterwards."""

    firing: Firing
    run: RunRecord | None
    champion: str


def history(paths: SchedulerPaths, schedule: str) -> list[Past]:
    """Return the firings of a schedule, the latest first."""
    rows, champion = list[Past](), ""
    ids = {run.job_name: run.id for run in stored.runs(paths.workspace, steps=False)}
    for firing in reversed(paths.read(lambda ledger: ledger.firings(schedule))):
        run = stored.run(paths.workspace, ids[firing.run]) if firing.run in ids else None
        models = [f"{model.name}:{model.version}" for step in run.steps for model in step.models] if run else []
        champion = models[-1] if models else champion
        rows.append(Past(firing, run, champion))
    return rows[::-1]


def print_history(rows: Sequence[Past]) -> None:
    metrics = main_metrics(row.run for row in rows if row.run)
    table = table_of("!Fired", "!State", "!Run", *(f">!{plain(name)}" for name in metrics), "!Champion", "Events")
    for firing, run, champion in ((row.firing, row.run, row.champion) for row in rows):
        results = run.results if run else {}
        values = [number(results[name]) if name in results else NOTHING for name in metrics]
        state, name = firing.status or "Running", plain(run.id) if run else NOTHING
        table.add_row(local_time(firing.at), state, name, *values, champion, firing.events or "")
    print_whole(console(), table)


def listed(
    name: str, own: Schedule | None, applied: Applied | Entry | Schedule | None, now: datetime
) -> tuple[dict[str, Any], list[str]]:
    """Return a schedule for JSON, and in lines.

    own:     the schedule that a file declares, or LocalClient has created
    applied: that of the workspace or of the ledger. One that no scheduler has read yet is its declaration
    """
    trigger = own.trigger if own else applied.trigger if applied else None
    state = "not applied" if applied is None else "enabled" if getattr(applied, "enabled", True) else "disabled"
    differs = bool(own and isinstance(applied, Applied) and trigger_differs(own.trigger, applied.trigger))
    created = applied.created if isinstance(applied, Entry) else now
    on_change = "" if isinstance(applied, Applied) else str(getattr(own or applied, "policy", ""))
    is_timed = state != "disabled" and not on_change
    due = next(firings(trigger, now, created), None) if trigger and is_timed else None
    row = {
        "name": name,
        "declared_in": own.where if own else None,
        "state": state,
        "differs": differs,
        "trigger": in_words(trigger) if trigger else None,
        "time_zone": trigger.time_zone if trigger else None,
        "on_change": on_change or None,
        "next": due.isoformat() if due else None,
    }
    lines = [f"{name}  {state}{', applied with another trigger' if differs else ''}"]
    lines.append(f"  {own.where if own else 'not declared here'}")
    if on_change:
        lines.append(f"  {on_change}")
    elif trigger:
        lines.append(f"  {in_words(trigger)}, {trigger.time_zone}")
        lines += [f"  next: {local_time(due)}"] if due else []
    return row, lines
