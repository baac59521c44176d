"""Limit repeated work to a share of a core."""

from __future__ import annotations

import time


class Allowance:
    """CPU time for work that is repeated: a share of one core, and a credit for the beginning.

    share:  of a core, between 0 and 1
    credit: seconds of CPU time that may be used at once. Unused time is saved up to this amount.
    """

    def __init__(self, share: float, credit: float) -> None:
        self._share = share
        self._credit = credit
        self._left = credit
        self._updated: float | None = None

    def is_left(self, now: float) -> bool:
        """Return whether the work may be done. now: seconds of a monotonic clock"""
        if self._updated is not None:
            self._left = min(self._left + (now - self._updated) * self._share, self._credit)
        self._updated = now
        return self._left > 0

    def use(self, since: float) -> None:
        """Subtract the CPU time of this thread since then, a value of `time.thread_time`."""
        self._left -= time.thread_time() - since
