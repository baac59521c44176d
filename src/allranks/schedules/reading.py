"""Read azure-ai-ml's triggers as plain data, and report errors that the SDK accepts.

Neither the SDK nor Azure ML's documentation defines an hour 25 or a weekday in a daily schedule, so ambiguous values
are rejected here.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from tzlocal.windows_tz import tz_win, win_tz

from allranks.errors import InputError, Problem, did_you_mean, raise_any
from allranks.schedules.triggers import (
    FREQUENCIES,
    WEEK_DAYS,
    Cron,
    Recurrence,
    Trigger,
    crontab,
    firings,
    moment,
    wall,
    zone,
)
from allranks.sdk import internals

Place = Callable[[str], str]
"""Maps a key of the trigger to its name in messages."""

_FORMAT = "YYYY-MM-DDThh:mm:ss"


def read_trigger(trigger: Any, place: Place, *, any_offset: bool = False) -> Trigger:
    """Return the SDK's CronTrigger or RecurrenceTrigger as plain data. Raise InputError with all of its problems.

    any_offset: whether a time may have an offset that is not the zone's own, as in the service's responses. The SDK
                drops offsets when it sends a time, so such a time in a file would fire at a different moment
    """
    problems: list[Problem] = []
    if not isinstance(trigger, (internals.CronTrigger, internals.RecurrenceTrigger)):
        found = "there is none" if trigger is None else f"a {type(trigger).__name__}"
        raise InputError(Problem(place("trigger"), found, "a CronTrigger or a RecurrenceTrigger", "set one"))
    time_zone = _time_zone(trigger.time_zone, place, problems)
    start = _wall_time(trigger.start_time, "start_time", time_zone, place, problems, any_offset)
    end = _wall_time(trigger.end_time, "end_time", time_zone, place, problems, any_offset)
    parsed: Trigger
    if isinstance(trigger, internals.CronTrigger):
        problems += _cron_problems(trigger.expression, place("expression"))
        parsed = Cron(" ".join(str(trigger.expression).split()), time_zone or "UTC", start, end)
    else:
        parsed = _recurrence(trigger, time_zone or "UTC", start, end, place, problems)
    if not problems:
        problems += _never_fires(parsed, place)
    raise_any(problems)
    return parsed


def _time_zone(value: Any, place: Place, problems: list[Problem]) -> str | None:
    # Excludes two zones that Windows marks as old and Unicode's table omits.
    known = tuple(str(entry.value) for entry in internals.TimeZone if entry.value in win_tz)
    name = str(getattr(value, "value", value))
    if name in known:
        return name
    ours = tz_win.get(name)  # of an IANA zone such as Europe/Berlin
    other = "choose one of azure.ai.ml.constants.TimeZone"
    fix = f'write "{ours}"' if ours in known else did_you_mean(name, known, other)
    expected = 'one of the names that Azure ML has, such as "W. Europe Standard Time" or "UTC"'
    problems.append(Problem(place("time_zone"), repr(value), expected, fix))
    return None


def _wall_time(
    value: Any, key: str, time_zone: str | None, place: Place, problems: list[Problem], any_offset: bool
) -> datetime | None:
    """Return the wall time. An offset is accepted only if it is the zone's own at that time, or `any_offset` is set."""
    if value in (None, ""):
        return None
    try:
        parsed = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError:
        problems.append(Problem(place(key), repr(value), f"a time such as {_FORMAT}", "write it so"))
        return None
    wall_time = parsed.replace(tzinfo=None)
    if parsed.utcoffset() is None or time_zone is None:
        return wall_time
    zone_offset = moment(wall_time, zone(time_zone)).astimezone(zone(time_zone)).utcoffset()
    if parsed.utcoffset() == zone_offset:
        return wall_time
    in_zone = wall(parsed, zone(time_zone))
    if any_offset:
        return in_zone
    found = f"{value!s}, whose offset is not that of {time_zone}"
    expected = f"{_FORMAT}, a time of the time zone {time_zone}: the SDK drops the offset of a datetime"
    problems.append(Problem(place(key), found, expected, f'write "{in_zone.isoformat()}"'))
    return None


def _cron_problems(expression: Any, where: str) -> Iterator[Problem]:
    expected = "five fields: MINUTES HOURS DAYS MONTHS DAYS-OF-WEEK, such as 30 2 * * 1-5"
    fields = expression.split() if isinstance(expression, str) else []
    if len(fields) != 5:
        what = repr(expression) + (f", {len(fields)} fields" if len(fields) > 1 else "")
        fix = "omit the seconds" if len(fields) in (6, 7) else "write it so"
        yield Problem(where, what, expected, fix)
        return
    if any(field != "*" for field in fields[2:4]):
        found = f"{expression!r}, with days of the month or months, which Azure ML ignores: it would fire daily"
        fix = "for days of the month: RecurrenceTrigger(frequency='month', ...) with month_days"
        yield Problem(where, found, "* in the third and the fourth field", fix)
        return
    try:
        crontab(expression)
    except ValueError as error:
        yield Problem(where, f"{expression!r}: {error}", expected, "correct the field")


def _recurrence(
    trigger: Any, time_zone: str, start: datetime | None, end: datetime | None, place: Place, problems: list[Problem]
) -> Recurrence:
    frequency = str(getattr(trigger.frequency, "value", trigger.frequency)).lower()
    if frequency not in FREQUENCIES:
        problems.append(Problem(place("frequency"), repr(trigger.frequency), " or ".join(FREQUENCIES)))
    if not _is_whole(trigger.interval) or trigger.interval < 1:
        problems.append(Problem(place("interval"), repr(trigger.interval), "a whole number of at least 1"))
    pattern, before = trigger.schedule, len(problems)
    hours = _numbers(pattern.hours, "hours", 0, 23, place, problems)
    minutes = _numbers(pattern.minutes, "minutes", 0, 59, place, problems)
    month_days = _numbers(pattern.month_days, "month_days", 1, 31, place, problems)
    week_days = _week_days(pattern.week_days, place, problems)
    found = Recurrence(frequency, trigger.interval, hours, minutes, week_days, month_days, time_zone, start, end)
    if len(problems) == before:
        problems += _pattern_problems(found, place)
    return found


_FREQUENCIES_WITH = {
    "hours": ("day", "week", "month"),
    "minutes": ("day", "week", "month"),
    "week_days": ("week", "month"),
    "month_days": ("month",),
}
"""The frequencies with which each key of a pattern is valid."""


def _pattern_problems(trigger: Recurrence, place: Place) -> Iterator[Problem]:
    for key, suitable in _FREQUENCIES_WITH.items():
        values = getattr(trigger, key)
        if values and trigger.frequency in FREQUENCIES and trigger.frequency not in suitable:
            found = f"{_joined(values)} with the frequency {trigger.frequency}"
            expected = f"no {key}: valid only with the frequency {' or '.join(suitable)}"
            yield Problem(place(f"schedule.{key}"), found, expected, "remove them, or use that frequency")
            return
    has_days = trigger.week_days or trigger.month_days
    if bool(trigger.hours) != bool(trigger.minutes) or (has_days and not trigger.hours):
        missing = "minutes" if trigger.hours else "hours"
        fix = "name at least one hour and one minute"
        yield Problem(place(f"schedule.{missing}"), "none", "both hours and minutes", fix)
    if trigger.week_days and trigger.month_days:
        found = f"{_joined(trigger.week_days)} together with month_days {_joined(trigger.month_days)}"
        fix = "remove one of them, or declare two schedules"
        yield Problem(place("schedule.week_days"), found, "either days of the week or days of the month", fix)


def _numbers(value: Any, key: str, low: int, high: int, place: Place, problems: list[Problem]) -> tuple[int, ...]:
    numbers = value if isinstance(value, (list, tuple)) else [] if value is None else [value]
    invalid = [number for number in numbers if not _is_whole(number) or not low <= number <= high]
    if invalid:
        expected = f"whole numbers from {low} to {high}"
        problems.append(Problem(place(f"schedule.{key}"), _joined(invalid), expected, "correct or remove it"))
    return tuple(sorted({number for number in numbers if number not in invalid}))


def _week_days(value: Any, place: Place, problems: list[Problem]) -> tuple[str, ...]:
    values = value if isinstance(value, (list, tuple)) else [value] if value else []
    names = [str(getattr(day, "value", day)).lower() for day in values]
    invalid = [name for name in names if name not in WEEK_DAYS]
    if invalid:
        problems.append(Problem(place("schedule.week_days"), _joined(invalid), ", ".join(WEEK_DAYS)))
    return tuple(name for name in WEEK_DAYS if name in names)


def _never_fires(trigger: Trigger, place: Place) -> Iterator[Problem]:
    """Yield a problem if the trigger can never fire."""
    if trigger.start and trigger.end and trigger.end <= trigger.start:
        found = f"{trigger.end.isoformat()}, which is not after the start, {trigger.start.isoformat()}"
        yield Problem(place("end_time"), found, "an end after the start", "correct one of them, or remove the end")
        return
    # Without a start, intervals begin at the creation, which is unknown. An end without a start may be in the past.
    begin = trigger.start or datetime(2000, 1, 1)
    after = begin.replace(tzinfo=UTC) - timedelta(days=2)
    if trigger.start is None and isinstance(trigger, Recurrence):
        return
    if next(firings(trigger, after, after), None) is None:
        found = "it can never fire: no such time is between its start and its end"
        fix = "correct its days, its interval, or its start and end"
        yield Problem(place("schedule" if isinstance(trigger, Recurrence) else "expression"), found, "", fix)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _joined(values: Any) -> str:
    return ", ".join(map(str, values))
