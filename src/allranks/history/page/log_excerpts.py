"""Excerpt the last lines of the ranks' logs, within a page's limit of size."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from markupsafe import Markup, escape

from allranks.history.formatting import plain
from allranks.history.log_redaction import open_log
from allranks.history.page.items import ATTENTION
from allranks.history.records import RankRecord, Status, StepRecord
from allranks.secrets import redact

_BUDGET = 800_000
"""Maximum bytes of all excerpts of a page."""
_LONGEST = 32_000
_SHORTEST = 1_000
"""Maximum bytes of an excerpt if the run has few ranks, and if it has very many."""
_ATTENTION = 8_000
"""Bytes that a failed or running rank may have in any run."""
_LINES = 400
_BEFORE = 4096
"""Bytes that are read before an excerpt. A secret that begins there, such as a private key, is masked too."""


@dataclass(frozen=True)
class Excerpt:
    """The end of a log, escaped. complete: whether it is the whole log. size: the bytes of the log"""

    text: Markup
    complete: bool
    size: int


class LogExcerpts:
    """Read excerpts of logs. A log that has not changed is not read again.

    known: the run's secrets, which are masked like everything that looks like a secret
    """

    def __init__(self, known: frozenset[str] = frozenset()) -> None:
        self._known = known
        self._cache: dict[str, tuple[tuple[int, int, int], Excerpt]] = {}
        self._seen: dict[str, tuple[int, int] | None] = {}

    def excerpts(self, steps: Iterable[StepRecord]) -> dict[str, Excerpt]:
        """Return the excerpts by the path of the log. Ranks that failed or are running come first, then late steps."""
        ranks = list(_by_relevance(steps))
        share = min(max(_BUDGET // max(len(ranks), 1), _SHORTEST), _LONGEST)
        result: dict[str, Excerpt] = {}
        self._seen = {}
        budget = _BUDGET
        for rank in ranks:
            if rank.log in self._seen:
                continue
            limit = max(share, _ATTENTION) if rank.status in ATTENTION else share
            excerpt = self._excerpt(rank.log, limit)
            if excerpt is None:
                continue
            budget -= len(excerpt.text.encode(errors="replace"))
            if budget < 0:
                break
            result[rank.log] = excerpt
        self._cache = {log: cached for log, cached in self._cache.items() if log in result}
        return result

    def changed(self) -> bool:
        """Return whether a log has changed since `excerpts` read it, or an empty one has got its first line."""
        return any(_state(log) != seen for log, seen in self._seen.items())

    def _excerpt(self, log: str, limit: int) -> Excerpt | None:
        """Return the end of a log; None if it is empty or cannot be read."""
        state = self._seen[log] = _state(log)
        if state is None or state[0] == 0:
            return None
        cached = self._cache.get(log)
        if cached is not None and cached[0] == (*state, limit):
            return cached[1]
        size = state[0]
        start = max(size - limit, 0)
        before = max(start - _BEFORE, 0)
        try:
            with open_log(log) as file:
                file.seek(before)
                data = file.read(size - before)
        except OSError:
            return None
        text = redact(plain(data.decode("utf-8", "replace")), self._known).rstrip()
        excerpt = _shorten(text, limit, size, whole=before == 0)
        self._cache[log] = ((*state, limit), excerpt)
        return excerpt


def _shorten(text: str, limit: int, size: int, *, whole: bool) -> Excerpt:
    """Return the last lines that take at most `limit` bytes when they are escaped. A single longer line is cut.

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
    failed = [step for step in latest_first if step.verdict is not None]
    for step in failed:
        yield from (rank for rank in step.ranks if step.verdict and rank.rank == step.verdict.rank)
    order = {Status.FAILED: 0, Status.RUNNING: 1}
    others = [rank for step in latest_first for rank in step.ranks if rank.log]
    yield from sorted(others, key=lambda rank: order.get(rank.status, 2))


def _state(log: str) -> tuple[int, int] | None:
    """Return what changes when the log is written; None if it is not a readable file."""
    try:
        found = os.stat(log)
    except (OSError, ValueError):
        return None
    return found.st_size, found.st_mtime_ns
