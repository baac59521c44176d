"""Print schedules, their state, and what happens to them."""

import time
from datetime import datetime
from json import dumps
from typing import Any

from allranks.azure.schedules import Applied, trigger_differs
from allranks.cli.console import console
from allranks.scheduler.events import Event
from allranks.scheduler.ledger import Entry, Firing
from allranks.schedules.finding import Schedule
from allranks.schedules.triggers import firings, in_words
from allranks.text import clock, local_time, plain


def print_event(as_json: bool, event: Event) -> None:
    """Print ``12:03:04  nightly  fires: run nightly-20260105T013000Z``, or a line of JSON."""
    if as_json:
        data = {"event": event.kind, **({"schedule": event.schedule} if event.schedule else {}), **event.values}
        print(dumps(data, default=datetime.isoformat), flush=True)
        return
    line = "  ".join(part for part in (clock(time.time()), event.schedule, event.text) if part)
    console().print(" ".join(plain(line).splitlines()), soft_wrap=True, markup=False, highlight=False)


def last_firing(last: Firing, pid: int | None) -> str:
    status = last.status or ("waits for the next scheduler" if pid is None else "Running")
    return f"{local_time(last.at)}, run {last.run}  {status}{last.reason and ': '}{last.reason}"


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
    policy = getattr(own or applied, "policy", None)
    on_change = str(policy or "") if not isinstance(applied, Applied) else ""
    is_due = trigger and state != "disabled" and not on_change
    due = next(firings(trigger, now, created), None) if trigger and is_due else None
    row = {
        "name": name,
        "declared_in": own.where if own else None,
        "state": state,
        "differs": differs,
        "trigger": in_words(trigger) if trigger else None,
        "time_zone": trigger.time_zone if trigger else None,
        "on_change": policy.on_change if policy and on_change else None,
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
