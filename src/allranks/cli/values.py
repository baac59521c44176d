"""Read the values of options."""

import re
import time
from datetime import datetime

from allranks.contract import layout
from allranks.errors import InputError, Problem
from allranks.plan.reader.settings import with_stand_ins

ALL_RANKS = "all"
"""The value of --rank that stands for every rank."""

_SECONDS = {"m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
_AGE = re.compile(r"(\d{1,6})([mhdw])")
_UNITS = "a number with m, h, d or w: minutes, hours, days or weeks"


def streamed(rank: str) -> str:
    """Return the value of --rank. Raise InputError unless it is a number or `ALL_RANKS`."""
    if rank != ALL_RANKS and not re.fullmatch(r"[0-9]{1,6}", rank):
        raise InputError(Problem(f"--rank {rank}", "it is not a rank", f"a number, or {ALL_RANKS}"))
    return rank


def settings_of(
    pairs: list[str] | None, *, option: str = "--set", example: str = "epochs=5", form: str = "NAME=VALUE"
) -> dict[str, str]:
    """Return the values of --set, or of another option, as text, by name.

    Raise InputError for a pair without "=" or a repeated name.
    """
    settings: dict[str, str] = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise InputError(Problem(f"{option} {pair}", f"it is not {form}", form, f"for example: {option} {example}"))
        if name in settings:
            raise InputError(Problem(f"{option} {pair}", f"{name} is given twice", "", "remove one of them"))
        settings[name] = value
    return settings


def stand_ins_of(pairs: list[str] | None) -> dict[str, str]:
    """Return the folders of --stand-in as settings of a run. Raise InputError as `settings_of` does."""
    folders = settings_of(pairs, option="--stand-in", example="train=results/train", form="STEP=FOLDER")
    return with_stand_ins({}, folders)


def layout_settings(text: str) -> dict[str, str]:
    """Return the inputs of a component that set its layout, from a text such as 2x4; none if it is empty.

    Raise InputError for any other text.
    """
    if not text:
        return {}
    counts = layout.parse(text, "-j")
    return {name: str(getattr(counts, name)) for name in ("instance_count", "process_count_per_instance")}


def seconds(age: str, option: str) -> float:
    """Return an age such as ``30d`` in seconds. Raise InputError, which names the option, for any other text."""
    if (value := _seconds(age)) is None:
        raise InputError(Problem(f"{option} {age}", "it is not an age", _UNITS, f"for example: {option} 30d"))
    return value


def moment(text: str, option: str) -> float:
    """Return a date with an optional time, or the time that was an age ago, in seconds since the epoch.

    A date without a time zone is in the time zone of this machine. Raise InputError for any other text.
    """
    age = _seconds(text)
    if age is not None:
        return time.time() - age
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        expected = f"a date such as 2026-07-04 or 2026-07-04T12:00, or {_UNITS}"
        found = "it is neither a date nor an age"
        raise InputError(Problem(f"{option} {text}", found, expected, f"{option} 7d")) from None


def _seconds(age: str) -> float | None:
    match = _AGE.fullmatch(age)
    return None if match is None else float(int(match[1]) * _SECONDS[match[2]])
