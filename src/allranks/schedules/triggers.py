"""When a schedule fires, as plain data: the checked content of Azure ML's CronTrigger and RecurrenceTrigger."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import datetime

FREQUENCIES = ("minute", "hour", "day", "week", "month")
WEEK_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


@dataclass(frozen=True)
class Cron:
    """Fires at the wall times that match a crontab expression of five fields.

    time_zone:  its Windows name, which Azure ML uses
    start, end: the first and the last moment at which it may fire, as naive wall times of the zone
    """

    expression: str
    time_zone: str = "UTC"
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True)
class Recurrence:
    """Fires every `interval` minutes, hours, days, weeks or months.

    hours, minutes: the times of day at which it fires: each hour with each minute. Both are empty, or neither is
    week_days:      only with the frequency week or month; names of WEEK_DAYS
    month_days:     only with the frequency month; months without the day are skipped
    time_zone, start, end: as in Cron; intervals are counted from the start
    """

    frequency: str
    interval: int
    hours: tuple[int, ...] = ()
    minutes: tuple[int, ...] = ()
    week_days: tuple[str, ...] = ()
    month_days: tuple[int, ...] = ()
    time_zone: str = "UTC"
    start: datetime | None = None
    end: datetime | None = None


Trigger = Cron | Recurrence


def in_words(trigger: Trigger) -> str:
    """Return ``every 2 weeks on monday at 02:30`` or ``cron 0 2 * * 1-5``, without the zone."""
    if isinstance(trigger, Cron):
        return f"cron {trigger.expression}"
    every = trigger.frequency if trigger.interval == 1 else f"{trigger.interval} {trigger.frequency}s"
    days = [*trigger.week_days, *map(str, trigger.month_days)]
    times = [f"{hour:02d}:{minute:02d}" for hour in trigger.hours for minute in trigger.minutes]
    if len(times) > 4:
        times = [*times[:3], f"and {len(times) - 3} more times"]
    parts = [f"every {every}"]
    if days:
        parts.append(f"on {', '.join(days)}")
    if times:
        parts.append(f"at {', '.join(times)}")
    return " ".join(parts)


def dumps(trigger: Trigger) -> str:
    """Return a trigger as JSON. Equal triggers give equal texts."""
    return json.dumps({"kind": type(trigger).__name__, **asdict(trigger)}, default=datetime.isoformat, sort_keys=True)


def loads(text: str) -> Trigger:
    """Return the trigger that `dumps` has written."""
    data = json.loads(text)
    for key in ("start", "end"):
        data[key] = datetime.fromisoformat(data[key]) if data[key] else None
    if data.pop("kind") == Cron.__name__:
        return Cron(**data)
    for key in ("hours", "minutes", "week_days", "month_days"):
        data[key] = tuple(data[key])
    return Recurrence(**data)
