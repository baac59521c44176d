"""When a schedule fires: the checked content of Azure ML's CronTrigger and RecurrenceTrigger, and its firings.

Azure ML documents the fields ("Schedule machine learning pipeline jobs", "CLI (v2) schedule YAML schema"), and Logic
Apps documents the meaning of those that it shares ("Schedules for recurring triggers"):

- Intervals are counted from the start; a schedule without a start begins when it is created.
- Nothing fires before the start or after the end. Firings from before the schedule was created are not made up for.
- Without hours and minutes a recurrence fires at the start and then at the start's time of day.
- A recurrence on the 31st does not fire in months without one.

This module defines what they leave open: a week begins on Monday; minutes and hours are counted as elapsed time, days,
weeks and months by the calendar; for clock changes see `moment`.
"""

import contextlib
import functools
import heapq
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from dateutil.rrule import DAILY, MONTHLY, WEEKLY, rrule
from tzlocal.windows_tz import win_tz

FREQUENCIES = ("minute", "hour", "day", "week", "month")
WEEK_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_HORIZON = 100
"""Years without a firing after which a trigger never fires again: every day of a month recurs within eight years."""
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_PART = re.compile(r"(\*|\w+)(?:(?<!\*)-(\w+))?(?:/([1-9]\d*))?")
"""A part of a field of a crontab expression: first, last, step."""


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
    week_days:      names of WEEK_DAYS; only with the frequency week or month
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
    days = ", ".join([*trigger.week_days, *map(str, trigger.month_days)])
    times = [f"{hour:02d}:{minute:02d}" for hour in trigger.hours for minute in trigger.minutes]
    if len(times) > 4:
        times = [*times[:3], f"and {len(times) - 3} more times"]
    return f"every {every}{f' on {days}' if days else ''}{' at ' if times else ''}{', '.join(times)}"


def dumps(trigger: Trigger) -> str:
    """Return a trigger as JSON. Equal triggers give equal texts."""
    return json.dumps({"kind": type(trigger).__name__, **asdict(trigger)}, default=datetime.isoformat, sort_keys=True)


def loads(text: str) -> Trigger:
    data = json.loads(text)
    for key in ("start", "end"):
        data[key] = datetime.fromisoformat(data[key]) if data[key] else None
    if data.pop("kind") == Cron.__name__:
        return Cron(**data)
    for key in ("hours", "minutes", "week_days", "month_days"):
        data[key] = tuple(data[key])
    return Recurrence(**data)


def firings(trigger: Trigger, after: datetime, created: datetime) -> Iterator[datetime]:
    """Yield the moments at which a trigger fires, in UTC, ascending.

    after:   only later moments are yielded; has a time zone
    created: when the schedule was created, with a time zone; without a start, intervals are counted from it
    """
    tz = zone(trigger.time_zone)
    start = moment(trigger.start, tz) if trigger.start else created.astimezone(UTC).replace(microsecond=0)
    if trigger.start or isinstance(trigger, Recurrence):
        after = max(after, start - timedelta(microseconds=1))
    end = moment(trigger.end, tz) if trigger.end else None
    for firing in _candidates(trigger, start, after, tz):
        if end is not None and firing > end:
            return
        if firing > after:
            yield firing


def _candidates(trigger: Trigger, start: datetime, after: datetime, tz: ZoneInfo) -> Iterator[datetime]:
    """Yield firings in ascending order, beginning no later than with the first one after `after`."""
    if isinstance(trigger, Recurrence) and trigger.frequency in ("minute", "hour"):
        return _steps(start, timedelta(**{f"{trigger.frequency}s": trigger.interval}), after)
    # A wall time that clocks skipped just before `after` may fire after it.
    earliest = wall(after, tz) - moved_forward(after, tz)
    return _in_order(_wall_times(trigger, trigger.start or wall(start, tz), earliest), tz)


def _steps(start: datetime, step: timedelta, after: datetime) -> Iterator[datetime]:
    with contextlib.suppress(OverflowError):
        for number in itertools.count(max((after - start) // step, 0)):
            yield start + number * step


def _in_order(walls: Iterable[datetime], tz: ZoneInfo) -> Iterator[datetime]:
    """Yield the moments of ascending wall times in order, each once.

    Only wall times that clocks skip are out of order: they are held until the next wall time that clocks show.
    """
    held: list[datetime] = []
    last: datetime | None = None
    for wall_time in walls:
        instant = moment(wall_time, tz)
        heapq.heappush(held, instant)
        if wall(instant, tz) != wall_time:
            continue
        while held and held[0] <= instant:
            first = heapq.heappop(held)
            if first != last:
                yield first
            last = first
    for remaining in sorted(set(held)):
        if remaining != last:
            yield remaining


def _wall_times(trigger: Trigger, anchor: datetime, earliest: datetime) -> Iterable[datetime]:
    """Return the wall times at which a trigger fires, ascending, at least those from `earliest` on.

    anchor: is in a recurrence's first period
    """
    until = datetime(min(max(anchor, earliest).year + _HORIZON, date.max.year), 1, 1)
    if isinstance(trigger, Cron):
        minutes, hours, days = crontab(trigger.expression)
        midnight = datetime.combine(earliest, time.min)
        week_days = [(day - 1) % 7 for day in days]
        at = {"byminute": minutes, "byhour": hours, "bysecond": 0}
        daily: Iterable[datetime] = rrule(DAILY, midnight, byweekday=week_days, until=until, **at)
        return daily
    if trigger.frequency != "month":
        # Move the start, because the rule iterates over all periods since then.
        period = timedelta(days=trigger.interval * (7 if trigger.frequency == "week" else 1))
        anchor += max((earliest - anchor) // period - 1, 0) * period
    times: Iterable[datetime] = rrule(
        {"day": DAILY, "week": WEEKLY, "month": MONTHLY}[trigger.frequency],
        anchor if not trigger.hours else datetime.combine(anchor, time.min),
        trigger.interval,
        until=until,
        byhour=trigger.hours or None,
        byminute=trigger.minutes or None,
        bysecond=0 if trigger.hours else None,
        byweekday=[WEEK_DAYS.index(day) for day in trigger.week_days] or None,
        bymonthday=trigger.month_days or None,
    )
    return times


def crontab(expression: str) -> tuple[list[int], list[int], list[int]]:
    """Return the minutes, hours and days of the week (0 is Sunday) of an expression of five fields.

    Raise ValueError if a field is invalid.
    """
    minutes, hours, _, _, days = expression.lower().split()
    return _values(minutes, 59), _values(hours, 23), _values(days, 6, _DAYS)


def _values(field: str, last: int, names: tuple[str, ...] = ()) -> list[int]:
    """Return the values of a field of a crontab expression in ascending order. last: the largest one"""
    found: set[int] = set()
    for part in field.split(","):
        match = _PART.fullmatch(part)
        if match is None:
            raise ValueError(f"{field} is not a list of numbers, ranges and steps")
        first, end, step = match.groups()
        ends = [0, last] if first == "*" else [_value(text, last, names) for text in (first, end or first)]
        if first != "*" and step and not end:
            ends[1] = last
        if ends[0] > ends[1]:
            raise ValueError(f"{part} ends before it begins")
        found.update(range(ends[0], ends[1] + 1, int(step or 1)))
    return sorted(found)


def _value(text: str, last: int, names: tuple[str, ...]) -> int:
    if text in names:
        return names.index(text)
    if not text.isdecimal():
        raise ValueError(f"{text} is not a number" + (f" or one of {', '.join(names)}" if names else ""))
    if int(text) > last:
        raise ValueError("Sunday is 0, not 7" if names and text == "7" else f"{text} is out of range: 0 to {last}")
    return int(text)


@functools.cache
def zone(name: str) -> ZoneInfo:
    """Return the zone with a Windows name. Raise KeyError if the name is unknown."""
    return ZoneInfo(win_tz[name])


def moment(wall: datetime, place: ZoneInfo) -> datetime:
    """Return the moment of a wall time, in UTC, by RFC 5545's rule (3.3.5).

    A time that is skipped when clocks go forward is read with the earlier offset: 02:30 becomes 03:30. A repeated time
    means its first occurrence, so each time fires exactly once.
    """
    return wall.replace(tzinfo=place, fold=0).astimezone(UTC)


def wall(instant: datetime, place: ZoneInfo) -> datetime:
    """Return the zone's wall time at a moment."""
    return instant.astimezone(place).replace(tzinfo=None, fold=0)


def moved_forward(instant: datetime, place: ZoneInfo) -> timedelta:
    """Return the duration by which the zone's clocks went forward in the 24 hours before a moment."""
    now = instant.astimezone(place).utcoffset() or timedelta()
    before = (instant - timedelta(days=1)).astimezone(place).utcoffset() or timedelta()
    return max(now - before, timedelta())
