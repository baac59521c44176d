"""Times that users give as an age or as a date: ``12h``, ``7d``, ``2026-07-04``, ``2026-07-04 12:00``."""

from __future__ import annotations

import re
import time
from datetime import datetime

_SECONDS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_AGE = re.compile(r"(\d{1,6})([mhdw])")
_UNITS = "a number with m, h, d or w: minutes, hours, days or weeks"


def seconds(age: str, option: str) -> float:
    """Return an age such as ``30d`` in seconds. Raise InputError, which names the option, for any other text."""
    from allranks.errors import InputError, Problem

    if (value := _seconds(age)) is None:
        raise InputError(Problem(f"{option} {age}", "is no age", _UNITS, f"for example: {option} 30d"))
    return value


def moment(text: str, option: str) -> float:
    """Return a date with an optional time, or the time that was an age ago, in seconds since the epoch.

    A date without a time zone is in the time zone of this machine. Raise InputError for any other text.
    """
    from allranks.errors import InputError, Problem

    age = _seconds(text)
    if age is not None:
        return time.time() - age
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        expected = f"a date such as 2026-07-04 or 2026-07-04T12:00, or {_UNITS}"
        raise InputError(Problem(f"{option} {text}", "is no date and no age", expected, f"{option} 7d")) from None


def _seconds(age: str) -> float | None:
    match = _AGE.fullmatch(age)
    return None if match is None else float(int(match[1]) * _SECONDS[match[2]])
