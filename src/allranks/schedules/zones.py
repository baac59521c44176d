"""Time zones by the names that Azure ML has for them, which are Windows'."""

from __future__ import annotations

import difflib
import functools
from datetime import datetime, timedelta, timezone
from types import MappingProxyType
from zoneinfo import ZoneInfo

OLD = MappingProxyType(
    {
        # Windows marks both as old and Unicode's table leaves them out. Azure ML lists the first at UTC-02:00, where
        # nobody has lived who changes clocks; the second is Kamchatka's before Windows called it Russia Time Zone 11.
        "Mid-Atlantic Standard Time": "Etc/GMT+2",
        "Kamchatka Standard Time": "Asia/Kamchatka",
    }
)


@functools.cache
def zone(name: str) -> ZoneInfo:
    """Return the zone of Windows' name. Raise KeyError if there is none."""
    from tzlocal.windows_tz import win_tz

    return ZoneInfo(OLD.get(name) or win_tz[name])


def similar(name: str, known: tuple[str, ...]) -> str:
    """Return the name of Azure ML's that was likely meant: that of an IANA zone such as Europe/Berlin, or the most
    similar one; empty where there is none."""
    from tzlocal.windows_tz import tz_win

    if tz_win.get(name) in known:
        return tz_win[name]
    by_lower = {entry.lower(): entry for entry in known}
    found = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return by_lower[found[0]] if found else ""


def moment(wall: datetime, place: ZoneInfo) -> datetime:
    """Return the moment of a wall time, in UTC, by RFC 5545's rule (3.3.5).

    A time that is left out where clocks go forward is read with the offset from before: 02:30 is then what clocks show
    as 03:30. Of a time that comes twice the first one is meant. So a schedule fires neither less nor more often than
    its times say.
    """
    return wall.replace(tzinfo=place, fold=0).astimezone(timezone.utc)


def wall(instant: datetime, place: ZoneInfo) -> datetime:
    """Return what clocks of the zone show at a moment."""
    return instant.astimezone(place).replace(tzinfo=None, fold=0)


def moved_forward(instant: datetime, place: ZoneInfo) -> timedelta:
    """By how much clocks of the zone were put forward in the day before a moment."""
    now = instant.astimezone(place).utcoffset() or timedelta()
    before = (instant - timedelta(days=1)).astimezone(place).utcoffset() or timedelta()
    return max(now - before, timedelta())
