"""Eviction of a low-priority instance: Azure ML sends SIGTERM first, and SIGKILL about 30 seconds later."""

from __future__ import annotations

import os
import signal
import time
import weakref
from types import FrameType

EVICTED = 143
"""The exit code of a training that saved a checkpoint and stopped because of an eviction: 128 + SIGTERM."""

REPEATED_SECONDS = 5.0
"""For how long after a SIGTERM others are the same request."""


class Evicted(SystemExit):
    """Ends a training after its checkpoint was saved, on every rank at the same step, with exit code 143."""

    def __init__(self) -> None:
        super().__init__(EVICTED)


class Eviction:
    """Record whether this process has received SIGTERM. Must be constructed on the main thread.

    A launcher may pass on a SIGTERM that the platform has sent to every process: torchrun does. So SIGTERM counts once
    for `REPEATED_SECONDS`, for all objects of this class. A later one ends the process immediately.
    """

    def __init__(self) -> None:
        self.requested = False
        self._process = os.getpid()
        _evictions.add(self)
        signal.signal(signal.SIGTERM, _on_sigterm)

    @property
    def is_forked(self) -> bool:
        """Whether this is a copy in a forked process, such as a DataLoader's worker, with no checkpoint to save."""
        return os.getpid() != self._process


_evictions: weakref.WeakSet[Eviction] = weakref.WeakSet()
_requested_at = 0.0


def _on_sigterm(_number: int, _frame: FrameType | None) -> None:
    global _requested_at
    own = [eviction for eviction in _evictions if not eviction.is_forked]
    new = [eviction for eviction in own if not eviction.requested]
    now = time.monotonic()
    if new:
        _requested_at = now
    for eviction in new:
        eviction.requested = True
    if not own or now - _requested_at > REPEATED_SECONDS:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
