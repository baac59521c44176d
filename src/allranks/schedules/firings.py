"""When a trigger fires.

Azure ML documents the fields ("Schedule machine learning pipeline jobs", "CLI (v2) schedule YAML schema"), and what
they mean where they are Logic Apps' recurrence ("Schedules for recurring triggers"). From there:

- The start is what intervals are counted from; a schedule without one starts when it is created.
- Nothing fires before the start or after the end. Firings that were before the schedule was created are not made up.
- Without hours and minutes a recurrence fires at the start and then at the start's time of day.
- A month that has no 31st, where that day is asked for, does not fire.

What they leave open is set here: a week begins on Monday; minutes and hours are counted as they pass, days, weeks and
months by the calendar; what happens as clocks change is said in `zones.moment`.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from datetime import date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

from allranks.schedules.triggers import WEEK_DAYS, Cron, Recurrence, Trigger
from allranks.schedules.zones import moment, moved_forward, wall, zone

_HORIZON = 100
"""Years after which something that has not fired yet never will: days of a month come back within eight."""


def firings(trigger: Trigger, after: datetime, created: datetime) -> Iterator[datetime]:
    """Yield the moments at which a trigger fires, in UTC and in their order.

    after:   those after this moment, which has a time zone
    created: when the schedule was made, with a time zone: what is counted without a start is counted from there
    """
    place = zone(trigger.time_zone)
    start = moment(trigger.start, place) if trigger.start else created.astimezone(timezone.utc).replace(microsecond=0)
    if trigger.start or isinstance(trigger, Recurrence):
        after = max(after, start - timedelta(microseconds=1))
    end = moment(trigger.end, place) if trigger.end else None
    for found in _all(trigger, start, after, place):
        if end is not None and found > end:
            return
        if found > after:
            yield found


def _all(trigger: Trigger, start: datetime, after: datetime, place: ZoneInfo) -> Iterator[datetime]:
    """In their order, from a moment that is not later than the first one after `after`."""
    if isinstance(trigger, Recurrence) and trigger.frequency in ("minute", "hour"):
        step = timedelta(**{f"{trigger.frequency}s": trigger.interval})
        return _steps(start, step, after)
    # A time that was left out just before is made up for later than what clocks show now.
    earliest = wall(after, place) - moved_forward(after, place)
    if isinstance(trigger, Cron):
        return _in_order(_cron(trigger.expression, earliest), place)
    anchor = trigger.start or wall(start, place)
    return _in_order(_calendar(trigger, anchor, earliest), place)


def _steps(start: datetime, step: timedelta, after: datetime) -> Iterator[datetime]:
    count = max((after - start) // step, 0)
    try:
        while True:
            yield start + count * step
            count += 1
    except OverflowError:
        return


def _in_order(walls: Iterable[datetime], place: ZoneInfo) -> Iterator[datetime]:
    """Yield the moments of ascending wall times, each once.

    Only those that clocks leave out get out of order: they are held until one comes that clocks show.
    """
    held: list[datetime] = []
    last: datetime | None = None
    for shown in walls:
        found = moment(shown, place)
        heapq.heappush(held, found)
        if wall(found, place) != shown:
            continue
        while held and held[0] <= found:
            first = heapq.heappop(held)
            if first != last:
                yield first
            last = first
    for left in sorted(set(held)):
        if left != last:
            yield left


def _cron(expression: str, earliest: datetime) -> Iterator[datetime]:
    from croniter import croniter

    # Of naive times, because with a zone croniter fires a time that comes twice twice, and one that is left out an
    # hour early, if at all.
    times = croniter(expression, earliest.replace(microsecond=0) - timedelta(seconds=1), ret_type=datetime)
    last = min(earliest.year + _HORIZON, date.max.year)
    while (found := times.get_next()).year < last:
        yield found


def _calendar(trigger: Recurrence, anchor: datetime, earliest: datetime) -> Iterator[datetime]:
    """Wall times by day, week or month, from some time before `earliest` on."""
    times = sorted({time(hour, minute) for hour in trigger.hours for minute in trigger.minutes}) or [anchor.time()]
    last = max(anchor, earliest).year + _HORIZON
    try:
        for day in _days(trigger, anchor.date(), earliest.date()):
            if day.year > last:
                return
            yield from (datetime.combine(day, at) for at in times)
    except (OverflowError, ValueError):
        return  # the calendar's end


def _days(trigger: Recurrence, anchor: date, earliest: date) -> Iterator[date]:
    """Yield the days on which it fires, ascending, from the period that `earliest` is in."""
    if trigger.frequency == "month":
        yield from _month_days(trigger, anchor, earliest)
        return
    length = timedelta(days=trigger.interval * (7 if trigger.frequency == "week" else 1))
    first = anchor - timedelta(days=anchor.weekday()) if trigger.frequency == "week" else anchor
    numbers = sorted(WEEK_DAYS.index(name) for name in set(trigger.week_days)) or [(anchor - first).days]
    period = first + max((earliest - first) // length, 0) * length
    while True:
        yield from (period + timedelta(days=number) for number in numbers)
        period += length


def _month_days(trigger: Recurrence, anchor: date, earliest: date) -> Iterator[date]:
    first = anchor.year * 12 + anchor.month - 1
    now = earliest.year * 12 + earliest.month - 1
    month = first + max((now - first) // trigger.interval, 0) * trigger.interval
    wanted = set(trigger.month_days) or ({anchor.day} if not trigger.week_days else set())
    # Some interval may never meet a month that has the day, so what ends it is how many months were looked at.
    limit = max(first, now) + 12 * _HORIZON
    while month <= limit:
        begin = date(month // 12, month % 12 + 1, 1)
        for number in range(31):
            day = begin + timedelta(days=number)
            if day.month != begin.month:
                break
            if day.day in wanted or WEEK_DAYS[day.weekday()] in trigger.week_days:
                yield day
        month += trigger.interval
