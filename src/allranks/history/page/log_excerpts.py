"""Excerpt the last lines of the ranks' logs, within a page's size limit."""

import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from markupsafe import Markup, escape

from allranks.history.log_redaction import open_log
from allranks.history.page.items import ATTENTION
from allranks.history.records import RankRecord, Status, StepRecord
from allranks.secrets import redact
from allranks.text import plain

_BUDGET = 800_000
"""Maximum bytes of all excerpts of a page."""
_LONGEST = 32_000
_SHORTEST = 1_000
"""Maximum bytes of an excerpt if the run has few ranks, and if it has very many."""
_ATTENTION = 8_000
"""Minimum bytes for a failed or running rank."""
_LINES = 400
_BEFORE = 4096
"""Bytes to read before an excerpt, to mask a secret that begins there, such as a private key."""


class Excerpt(NamedTuple):
    """The end of a log, escaped. complete: whether it is the whole log. size: of the log, in bytes"""

    text: Markup
    complete: bool
    size: int


def excerpts(steps: Iterable[StepRecord], known: frozenset[str] = frozenset()) -> dict[str, Excerpt]:
    """Return the excerpts by the path of the log. Ranks that failed or are running come first, then late steps.

    known: the run's secrets, which are masked like everything that looks like a secret
    """
    ranks = list(_by_relevance(steps))
    share = min(max(_BUDGET // max(len(ranks), 1), _SHORTEST), _LONGEST)
    result: dict[str, Excerpt] = {}
    budget = _BUDGET
    for rank in ranks:
        if rank.log in result:
            continue
        limit = max(share, _ATTENTION) if rank.status in ATTENTION else share
        excerpt = _excerpt(rank.log, limit, known)
        if excerpt is None:
            continue
        budget -= len(excerpt.text.encode(errors="replace"))
        if budget < 0:
            break
        result[rank.log] = excerpt
    return result


def _excerpt(log: str, limit: int, known: frozenset[str]) -> Excerpt | None:
    """Return the end of a log; None if it is empty or cannot be read."""
    try:
        with open_log(log) as file:
            size = file.seek(0, os.SEEK_END)
            start = max(size - limit - _BEFORE, 0)
            file.seek(start)
            data = file.read(size - start)
    except (OSError, ValueError):
        return None
    text = redact(plain(data.decode("utf-8", "replace")), known).rstrip()
    return _shorten(text, limit, size, whole=start == 0) if data else None


def _shorten(text: str, limit: int, size: int, *, whole: bool) -> Excerpt:
    """Return the last lines that take at most `limit` bytes after escaping. A single longer line is cut.

    whole: whether the text is the whole log
    """
    lines = text.split("\n")
    chosen: list[Markup] = []
    for line in reversed(lines[-_LINES:]):
        escaped = escape(line)
        limit -= len(escaped.encode(errors="replace")) + 1
        if limit < 0:
            break
        chosen.append(escaped)
    complete = whole and len(chosen) == len(lines)
    if not chosen:
        chosen.append(escape(lines[-1][-_SHORTEST // 5 :]))  # an escaped character takes at most five bytes
    return Excerpt(Markup("\n").join(reversed(chosen)), complete, size)


def _by_relevance(steps: Iterable[StepRecord]) -> Iterator[RankRecord]:
    """Yield the ranks that have a log."""
    latest_first = list(steps)[::-1]
    for step in latest_first:
        yield from (rank for rank in step.ranks if step.verdict and rank.rank == step.verdict.rank)
    order = {Status.FAILED: 0, Status.RUNNING: 1}
    others = [rank for step in latest_first for rank in step.ranks if rank.log]
    yield from sorted(others, key=lambda rank: order.get(rank.status, 2))
