"""When schedules fire: against croniter, and against a walk through the year that shares no code with ours."""

import bisect
import functools
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from croniter import croniter
from hypothesis import given, settings
from hypothesis import strategies as st

from allranks.schedules.triggers import WEEK_DAYS, Cron, Recurrence, Trigger, firings

MINUTE = timedelta(minutes=1)
ZONES = {
    "W. Europe Standard Time": "Europe/Berlin",
    "Eastern Standard Time": "America/New_York",
    "Lord Howe Standard Time": "Australia/Lord_Howe",  # by half an hour
    "Pacific SA Standard Time": "America/Santiago",  # at midnight
    "Egypt Standard Time": "Africa/Cairo",  # at midnight, by a Friday
}
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
END = datetime(2027, 1, 1, tzinfo=UTC)
DAYS = 365


@functools.cache
def changes(name: str) -> tuple[datetime, ...]:
    """The moments of the year at which the zone's clocks change, found by looking at every quarter of an hour."""
    place = ZoneInfo(ZONES[name])
    moments = [BEGIN + timedelta(minutes=15 * number) for number in range(DAYS * 96)]
    offsets = [moment.astimezone(place).utcoffset() for moment in moments]
    return tuple(moments[i] for i in range(1, len(moments)) if offsets[i] != offsets[i - 1])


@functools.cache
def walk(name: str) -> tuple[tuple[datetime, tuple[datetime, ...]], ...]:
    """Every minute of the half days around the changes and of another one: with the wall times that are due at it.

    That is what clocks show, unless they showed it before; and as long after a change forward as it left out, also what
    it left out.
    """
    place = ZoneInfo(ZONES[name])
    found: list[tuple[datetime, tuple[datetime, ...]]] = []
    for first in sorted([BEGIN + timedelta(days=9), *(moment - timedelta(hours=5) for moment in changes(name))]):
        for number in range(720):
            moment = first + number * MINUTE
            shown = moment.astimezone(place)
            due = [] if shown.fold else [shown.replace(tzinfo=None)]
            for change in changes(name):
                offset = change.astimezone(place).utcoffset()
                before = (change - MINUTE).astimezone(place).utcoffset()
                assert offset is not None
                assert before is not None
                if change <= moment < change + (offset - before):
                    due.append((moment + before).replace(tzinfo=None))
            found.append((moment, tuple(due)))
    return tuple(found)


def test_the_zones_change_their_clocks_twice() -> None:
    assert {name: len(changes(name)) for name in ZONES} == dict.fromkeys(ZONES, 2)


def ours(trigger: Trigger, minutes: tuple[tuple[datetime, tuple[datetime, ...]], ...]) -> list[datetime]:
    """The moments that we say, within those that the walk looks at."""
    looked = [moment for moment, _ in minutes]
    found: list[datetime] = []
    at = 0
    while at < len(looked):
        # A block of neighbouring minutes at a time.
        last = at
        while last + 1 < len(looked) and looked[last + 1] - looked[last] == MINUTE:
            last += 1
        for moment in firings(trigger, looked[at] - timedelta(seconds=1), BEGIN):
            if moment > looked[last]:
                break
            found.append(moment)
        at = last + 1
    return found


zones = st.sampled_from(sorted(ZONES))
minute = st.integers(0, 59)
hour = st.integers(0, 23) | st.integers(0, 3)  # clocks change at night


def field(values: st.SearchStrategy[int], top: int) -> st.SearchStrategy[str]:
    value = values.map(str)
    # croniter reads a range of one value as all values.
    between = st.lists(values, min_size=2, max_size=2, unique=True).map(lambda pair: f"{min(pair)}-{max(pair)}")
    step = st.integers(1, top)
    stepped = st.tuples(st.just("*") | between, step).map(lambda pair: f"{pair[0]}/{pair[1]}")
    part = value | between | stepped
    return st.just("*") | value | st.lists(part, min_size=1, max_size=3).map(",".join)


names = st.sampled_from(["sun", "mon", "tue", "wed", "thu", "fri", "sat", "mon-fri", "tue-sat"])
expressions = st.tuples(field(minute, 59), field(hour, 23), field(st.integers(0, 6), 6) | names).map(
    lambda parts: f"{parts[0]} {parts[1]} * * {parts[2]}"
)
crons = st.builds(Cron, expressions, zones)


@pytest.mark.slow
@settings(max_examples=30)
@given(crons, st.integers(0, DAYS - 20), st.integers(0, 86399))
def test_cron_fires_as_croniter_does(trigger: Cron, day: int, second: int) -> None:
    place = ZoneInfo(ZONES[trigger.time_zone])
    after = BEGIN + timedelta(days=day, seconds=second)
    # Croniter fires a time that comes twice twice, and moves one that is left out to where clocks go on: hence not on
    # the days of a change, for which its fields are matched minute by minute.
    stop = next((change for change in changes(trigger.time_zone) if change > after - timedelta(days=1)), END)
    stop = stop - timedelta(days=1) if stop - timedelta(days=1) > after else after
    expected = []
    for found in islice(iter(croniter(trigger.expression, after.astimezone(place), ret_type=datetime)), 20):
        if found >= stop:
            break
        expected.append(found.astimezone(UTC))
    mine = list(islice(firings(trigger, after, after), len(expected) + 1))
    assert mine[: len(expected)] == expected
    assert len(expected) == 20 or mine[len(expected)] >= stop

    minutes, hours, _, _, weekdays = (
        set(range(60)) if values == ["*"] else {int(value) for value in values}
        for values in croniter.expand(trigger.expression)[0]
    )
    reference = [
        moment
        for moment, due in walk(trigger.time_zone)
        if any(w.minute in minutes and w.hour in hours and w.isoweekday() % 7 in weekdays for w in due)
    ]
    assert ours(trigger, walk(trigger.time_zone)) == reference


starts = st.datetimes(datetime(2025, 10, 1), datetime(2026, 11, 30)).map(lambda at: at.replace(second=0, microsecond=0))
hours = st.lists(hour, min_size=1, max_size=3, unique=True).map(lambda found: tuple(sorted(found)))
minutes = st.lists(minute, min_size=1, max_size=3, unique=True).map(lambda found: tuple(sorted(found)))
week_days = st.lists(st.sampled_from(WEEK_DAYS), min_size=1, max_size=3, unique=True).map(tuple)
month_days = st.lists(st.integers(1, 31), min_size=1, max_size=3, unique=True).map(tuple)
none = st.just(())
frequent = st.sampled_from(["minute", "hour"])
recurrences = st.one_of(
    st.builds(Recurrence, frequent, st.integers(1, 50), none, none, none, none, zones, starts),
    st.builds(Recurrence, st.sampled_from(["day", "week", "month"]), st.integers(1, 4), time_zone=zones, start=starts),
    st.builds(Recurrence, st.just("day"), st.integers(1, 9), hours, minutes, none, none, zones, starts),
    st.builds(Recurrence, st.just("week"), st.integers(1, 4), hours, minutes, none | week_days, none, zones, starts),
    st.builds(Recurrence, st.just("month"), st.integers(1, 4), hours, minutes, none, none | month_days, zones, starts),
    st.builds(Recurrence, st.just("month"), st.integers(1, 3), hours, minutes, week_days, none, zones, starts),
)


def due_on(trigger: Recurrence, start: date, day: date) -> bool:
    """Whether a day is one of the trigger's, by counting."""
    if trigger.frequency == "day":
        return (day - start).days % trigger.interval == 0
    if trigger.frequency == "week":
        monday = lambda of: of.toordinal() - of.weekday()  # noqa: E731
        wanted = trigger.week_days or (WEEK_DAYS[start.weekday()],)
        return (monday(day) - monday(start)) // 7 % trigger.interval == 0 and WEEK_DAYS[day.weekday()] in wanted
    months = (day.year - start.year) * 12 + day.month - start.month
    if months % trigger.interval:
        return False
    if trigger.week_days:
        return WEEK_DAYS[day.weekday()] in trigger.week_days
    return day.day in (trigger.month_days or (start.day,))


@pytest.mark.slow
@settings(max_examples=100)
@given(recurrences)
def test_a_recurrence_fires_as_a_walk_through_the_minutes_does(trigger: Recurrence) -> None:
    place = ZoneInfo(ZONES[trigger.time_zone])
    assert trigger.start is not None
    start = trigger.start.replace(tzinfo=place).astimezone(UTC)
    minutes = walk(trigger.time_zone)
    if trigger.frequency in ("minute", "hour"):
        length = trigger.interval * (60 if trigger.frequency == "hour" else 1)
        reference = [at for at, _ in minutes if at >= start and (at - start) // MINUTE % length == 0]
    else:
        days = functools.cache(lambda day: due_on(trigger, trigger.start.date(), day))

        def on_time(w: datetime) -> bool:
            if not trigger.hours:
                return w.time() == trigger.start.time()
            return w.hour in trigger.hours and w.minute in trigger.minutes

        reference = [at for at, due in minutes if at >= start and any(on_time(w) and days(w.date()) for w in due)]
    assert ours(trigger, minutes) == reference
    if trigger.frequency in ("minute", "hour"):
        return

    # The whole year, by its days.
    shown = set()
    for moment in firings(trigger, BEGIN, BEGIN):
        if moment >= END:
            break
        shown.add(moment.astimezone(place).date())
    first, last = max(start, BEGIN).astimezone(place).date() + timedelta(1), END.astimezone(place).date()
    for number in range((last - first).days):
        day = first + timedelta(days=number)
        assert (day in shown) == due_on(trigger, trigger.start.date(), day), day


BERLIN = "W. Europe Standard Time"


@pytest.mark.parametrize(
    ("trigger", "after", "expected"),
    [
        # Left out: 02:30 is what clocks show as 03:30. Twice: the first.
        (Cron("30 2 * * *", BERLIN), "2026-03-28T12:00", ["2026-03-29T01:30", "2026-03-30T00:30"]),
        (Cron("30 2 * * *", BERLIN), "2026-10-24T12:00", ["2026-10-25T00:30", "2026-10-26T01:30"]),
        (Recurrence("day", 1, (2, 3), (30,), (), (), BERLIN), "2026-03-28T12:00",
         ["2026-03-29T01:30", "2026-03-30T00:30"]),
        # Hours are counted as they pass.
        (Recurrence("hour", 12, start=datetime(2026, 3, 28, 12), time_zone=BERLIN), "2026-03-28T12:00",
         ["2026-03-28T23:00", "2026-03-29T11:00"]),
        # Days by the calendar.
        (Recurrence("day", 1, start=datetime(2026, 3, 28, 12), time_zone=BERLIN), "2026-03-28T00:00",
         ["2026-03-28T11:00", "2026-03-29T10:00"]),
        # No such day in that month.
        (Recurrence("month", 1, start=datetime(2026, 1, 31)), "2026-01-31T00:00",
         ["2026-03-31T00:00", "2026-05-31T00:00"]),
        (Recurrence("month", 1, (6,), (0,), (), (30,)), "2026-01-31T00:00", ["2026-03-30T06:00", "2026-04-30T06:00"]),
        # The week's first day is Monday.
        (Recurrence("week", 2, (0,), (0,), ("monday", "sunday"), (), "UTC", datetime(2026, 1, 7)), "2026-01-01T00:00",
         ["2026-01-11T00:00", "2026-01-19T00:00"]),
        # The start and the end may both fire.
        (Recurrence("day", 1, start=datetime(2026, 1, 1), end=datetime(2026, 1, 2)), "2025-01-01T00:00",
         ["2026-01-01T00:00", "2026-01-02T00:00"]),
        # What was before is not made up for; without a start it is counted from the creation.
        (Recurrence("day", 2, start=datetime(2017, 9, 7, 14)), "2017-09-08T13:00",
         ["2017-09-09T14:00", "2017-09-11T14:00"]),
        (Recurrence("hour", 1), "2026-01-01T00:20", ["2026-01-01T01:20", "2026-01-01T02:20"]),
        # Never.
        (Recurrence("month", 12, (0,), (0,), (), (30,), "UTC", datetime(2026, 2, 1)), "2026-01-01T00:00", []),
    ],
)  # fmt: skip
def test_it_fires(trigger: Trigger, after: str, expected: list[str]) -> None:
    moment = datetime.fromisoformat(after).replace(tzinfo=UTC)
    found = [at.strftime("%Y-%m-%dT%H:%M") for at in islice(firings(trigger, moment, moment), 2)]
    assert found == expected


def test_a_recurrence_without_a_start_begins_when_it_is_made() -> None:
    made = datetime(2026, 1, 1, 0, 20, tzinfo=UTC)
    assert next(firings(Recurrence("hour", 1), made - timedelta(microseconds=1), made)) == made


def test_what_fires_later_is_the_same_whenever_one_asks() -> None:
    trigger = Recurrence("week", 3, (2, 14), (0, 30), ("monday", "friday"), (), BERLIN, datetime(2026, 1, 1))
    every = list(islice(firings(trigger, BEGIN, BEGIN), 60))
    for moment in every[:40]:
        assert next(firings(trigger, moment, BEGIN)) == every[bisect.bisect(every, moment)]
