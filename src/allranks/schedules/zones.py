"""Time zones by the names that Azure ML uses, which are those of Windows."""

from __future__ import annotations

import difflib
import functools
from datetime import datetime, timedelta, timezone
from types import MappingProxyType
from zoneinfo import ZoneInfo

OLD = MappingProxyType(
    {
        # Windows marks both as old, and Unicode's table omits them. Azure ML lists the first at UTC-02:00, where no
        # inhabited place changes clocks; the second is Kamchatka's name before Windows' "Russia Time Zone 11".
        "Mid-Atlantic Standard Time": "Etc/GMT+2",
        "Kamchatka Standard Time": "Asia/Kamchatka",
    }
)


@functools.cache
def zone(name: str) -> ZoneInfo:
    """Return the zone with a Windows name. Raise KeyError if there is none."""
    from tzlocal.windows_tz import win_tz

    return ZoneInfo(OLD.get(name) or win_tz[name])


def similar(name: str, known: tuple[str, ...]) -> str:
    """Return the name in Azure ML that was probably meant; "" if there is none.

    That is the name of an IANA zone such as Europe/Berlin, or the most similar one.
    """
    from tzlocal.windows_tz import tz_win

    if tz_win.get(name) in known:
        return tz_win[name]
    by_lower = {entry.lower(): entry for entry in known}
    matches = difflib.get_close_matches(name.lower(), by_lower, n=1)
    return by_lower[matches[0]] if matches else ""


def moment(wall: datetime, place: ZoneInfo) -> datetime:
    """Return the moment of a wall time, in UTC, by RFC 5545's rule (3.3.5).

    A time that is skipped when clocks go forward is read with the offset from before: 02:30 is then 03:30. A time that
    is repeated is its first occurrence. So a schedule fires exactly as often as its times say.
    """
    return wall.replace(tzinfo=place, fold=0).astimezone(timezone.utc)


def wall(instant: datetime, place: ZoneInfo) -> datetime:
    """Return the zone's wall time at a moment."""
    return instant.astimezone(place).replace(tzinfo=None, fold=0)


def moved_forward(instant: datetime, place: ZoneInfo) -> timedelta:
    """Return by how much clocks of the zone were put forward in the 24 hours before a moment."""
    now = instant.astimezone(place).utcoffset() or timedelta()
    before = (instant - timedelta(days=1)).astimezone(place).utcoffset() or timedelta()
    return max(now - before, timedelta())
