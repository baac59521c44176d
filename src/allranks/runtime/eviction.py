"""Eviction of a low-priority instance: Azure ML sends SIGTERM first, and SIGKILL about 30 seconds later."""

from __future__ import annotations

import os
import signal
from types import FrameType

EVICTED = 143
"""The exit code of a training that saved a checkpoint and stopped because of an eviction: 128 + SIGTERM."""


class Evicted(SystemExit):
    """Ends a training after its checkpoint was saved, on every rank at the same step, with exit code 143."""

    def __init__(self) -> None:
        super().__init__(EVICTED)


class Eviction:
    """Record whether this process has received SIGTERM. Must be constructed on the main thread."""

    def __init__(self) -> None:
        self.requested = False
        self._process = os.getpid()
        signal.signal(signal.SIGTERM, self._on_sigterm)

    def _on_sigterm(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True
        if os.getpid() != self._process:
            # A forked process, such as a DataLoader's worker, has no checkpoint to save.
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
            return
        # A second SIGTERM ends the process immediately.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
