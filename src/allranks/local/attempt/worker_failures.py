"""Find the worker that failed first in the log of a launcher that started it: torchrun, or accelerate, which uses it.

The launcher prints a table with the worker's rank. The worker's own exception is above it, between those of others.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from allranks.runs.log_reader import tail

LINES = 2000
"""How many of the last lines of a log are searched."""

_ROOT_CAUSE = re.compile(
    r"Root Cause \(first observed failure\):\s*\[\d+\]:\s*time\s*:\s*(?P<time>\S+)\s+host\s*:.*\s+"
    r"rank\s*:\s*(?P<rank>\d+) \(local_rank: \d+\)"
)
_OWN = re.compile(r"\[rank(?P<rank>\d+)\]: (?P<text>.*)")
"""A line of what a worker's uncaught exception prints, as torch marks it once the process group exists."""
_TRACEBACK = "Traceback (most recent call last):"
_CONSEQUENCE = re.compile(
    r"Connection (?:closed by peer|reset|refused)|Broken pipe|DistNetworkError|DistStoreError|remote process|"
    r"Socket Timeout"
)
"""An exception of a worker that lost its connection to another one."""


@dataclass(frozen=True)
class WorkerFailure:
    """The worker that failed first among those of one launcher.

    rank:      by the launcher's count, which goes over all instances
    time:      as the launcher prints it, to the second
    traceback: the lines of its exception, which is the last one; none if the log has none
    """

    rank: int
    time: str
    traceback: Sequence[str] = ()

    @property
    def exception(self) -> str:
        return self.traceback[-1].strip() if self.traceback else ""

    @property
    def order(self) -> tuple[bool, bool, str]:
        """The key by which the cause sorts before its consequences."""
        return bool(_CONSEQUENCE.search(self.exception)), not self.exception, self.time


def of_log(log: str) -> WorkerFailure | None:
    """Return the failed worker in the log of a launcher; None if the log has no table of one."""
    lines = tail(log, LINES)
    tables = list(_ROOT_CAUSE.finditer("\n".join(lines)))
    if not tables:
        return None
    first, time = int(tables[-1]["rank"]), tables[-1]["time"]
    workers: dict[int, list[str]] = {}
    for line in lines:
        if own := _OWN.match(line):
            workers.setdefault(int(own["rank"]), []).append(own["text"])
    if not workers.get(first):
        return WorkerFailure(first, time, _traceback(lines))
    # The first one that the launcher has seen may have lost its connection to the one that failed.
    found = [WorkerFailure(rank, time, _traceback(texts)) for rank, texts in workers.items()]
    return min(found, key=lambda failure: (failure.order, failure.rank != first))


def _traceback(lines: Sequence[str]) -> Sequence[str]:
    """Return the first traceback, up to the line of its exception."""
    start = next((place for place, line in enumerate(lines) if line.startswith(_TRACEBACK)), None)
    if start is None:
        return ()
    end = next((place for place, line in enumerate(lines[start + 1 :], start + 1) if line[:1].strip()), len(lines) - 1)
    return lines[start : end + 1]
