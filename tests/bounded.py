"""Waits with a bound. Pytest's own bound interrupts a test once; what waits after that would wait for ever."""

import subprocess
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import AnyStr

BOUND = 300.0
"""Seconds after which a test gives up waiting."""


class Popen(subprocess.Popen[AnyStr]):
    """A process that is killed if an error leaves the block, or if it does not end in time after the block."""

    def wait(self, timeout: float | None = None) -> int:
        return super().wait(BOUND if timeout is None else timeout)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is not None:
            self.kill()
        try:
            super().__exit__(kind, error, traceback)
        except subprocess.TimeoutExpired:
            self.kill()
            super().wait(10)
            raise


def join(thread: threading.Thread) -> None:
    """Wait until a thread has ended."""
    thread.join(BOUND)
    assert not thread.is_alive(), f"{thread.name} has not ended"


def until(condition: Callable[[], object], what: str = "", seconds: float = 60.0) -> None:
    """Wait for a condition that no event tells of, such as the end of a process of others."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.01)
