"""Format times, numbers, sizes and ranks as text. Shorten texts, and remove control characters."""

import math
import re
import time
from collections.abc import Sequence
from datetime import datetime

NOTHING = "–"
"""Shown for a missing value."""

_RANKS = 8
"""Maximum number of ranks to list individually."""

LONG = 100
"""Length from which on a reason is printed in full only once."""

_PATH = re.compile(
    r"(?<=['\"])(?:\w+:/)?/[^'\"]+(?=['\"])|(?<![\w/])[\w.~+:-]*/[^\s'\",;()\[\]<>]*[^\s'\",;:.()\[\]<>]"
)
"""A path or a URI; in quotes, it may contain blanks."""

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])?")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_LONE = re.compile("[\ud800-\udfff]")


def duration(seconds: float | None, *, whole: bool = False) -> str:
    """Return ``3.2 s``, ``42 s``, ``2 min 03 s``, ``1 h 04 min``, ``2 d 3 h``. whole: without a fraction."""
    if seconds is None or not math.isfinite(seconds):
        return NOTHING
    seconds = max(seconds, 0.0)
    if seconds < 9.95 and not whole:
        return f"{seconds:.2f} s" if seconds < 0.995 else f"{seconds:.1f} s"
    full = math.floor(seconds) if whole else round(seconds)
    if full < 60:
        return f"{full} s"
    if full < 3600:
        return f"{full // 60} min {full % 60:02d} s"
    if full < 86400:
        return f"{full // 3600} h {full % 3600 // 60:02d} min"
    return f"{full // 86400} d {full % 86400 // 3600} h"


def number(value: float) -> str:
    """Return a metric's value with four significant digits, unless it is an integer."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    size = abs(value)
    if value == int(value) and size < 1e15:
        return f"{int(value):,}"
    if size >= 1e6 or size < 1e-4:
        return f"{value:.3g}"
    return f"{value:,.0f}" if size >= 1000 else f"{value:.4g}"


def count(amount: int, noun: str) -> str:
    """Return ``1 step``, ``3 steps``."""
    return f"{amount:,} {noun}" if amount == 1 else f"{amount:,} {noun}s"


def in_bytes(size: int) -> str:
    """Return ``1.2 kB``."""
    value, unit = float(size), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.{1 if unit != 'B' and value < 99.95 else 0}f} {unit}"


def rank_list(ranks: Sequence[int]) -> str:
    """Return ``rank 2``, ``ranks 0, 1 and 3``, or ``12 ranks`` for many."""
    if len(ranks) == 1:
        return f"rank {ranks[0]}"
    if len(ranks) > _RANKS:
        return count(len(ranks), "rank")
    return f"ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]}"


def clock(moment: float) -> str:
    """Return ``12:03:04`` in this machine's time zone."""
    return time.strftime("%H:%M:%S", time.localtime(moment))


def when(moment: float | None) -> str:
    """Return ``2026-07-04 12:03:04`` in this machine's time zone; a dash for None or 0."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment)) if moment else NOTHING


def short_when(seconds: float, now: float) -> str:
    """Return a time of this day as ``12:03``, of this year as ``11-30 12:03``, and of another year as a date."""
    text, today = when(seconds)[:16], when(now)
    return text[11:] if text[:10] == today[:10] else text[5:] if text[:4] == today[:4] else text[:10]


def local_time(moment: datetime) -> str:
    """Return ``Mon 2026-01-05 02:30 CET``, in this machine's time zone."""
    return f"{moment.astimezone():%a %Y-%m-%d %H:%M %Z}"


def shortened(text: str) -> str:
    """Return the text, cut between words to about a line. Long paths lose folders in the middle, but are not cut."""
    text = _PATH.sub(_without_middle, text) if len(text) > LONG else text
    if len(text) <= LONG:
        return text
    word = text.rfind(" ", LONG // 2, LONG + 1)
    crossing = (path.end() for path in _PATH.finditer(text) if path.start() < LONG < path.end())
    end = next(crossing, word if word > 0 else LONG)
    return text[:end].rstrip() + (" …" if end < len(text) else "")


def _without_middle(path: re.Match[str]) -> str:
    parts = path[0].split("/")
    first = 3 if "://" in path[0] else 2
    short = "/".join((*parts[:first], "…", *parts[-2:])) if len(parts) > first + 3 else path[0]
    return short if len(short) <= LONG // 2 else f"{short[: LONG // 5]}…{short[-LONG // 4 :]}"


def plain(text: str) -> str:
    """Return the text without escape sequences, control characters and reordering marks.

    Of a line that was rewritten with carriage returns, such as a progress bar, the last state remains.
    """
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    if "\r" in text:
        text = "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return _LONE.sub("\ufffd", _CONTROLS.sub("", text))
