"""An instance that is taken away: SIGTERM comes first, SIGKILL about 30 seconds later (Azure ML, low priority)."""

from __future__ import annotations

import signal
from types import FrameType

EVICTED = 143
"""The exit code of a training that saved and stopped because an instance is taken away: 128 + SIGTERM."""


class Evicted(SystemExit):
    """The training is saved, and ends on every rank at the same step, with exit code 143."""

    def __init__(self) -> None:
        super().__init__(EVICTED)


class Eviction:
    """Whether this process was asked to end. Listens from when it is made, which must be on the main thread."""

    def __init__(self) -> None:
        self.requested = False
        signal.signal(signal.SIGTERM, self._on_sigterm)

    def _on_sigterm(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True
        # Whoever asks twice does not want to wait for the next step.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
