"""How reading and copying the files of one step is told to stop: by the threads that do it, and where others wait."""

from __future__ import annotations

import asyncio
import threading
from typing import TypeVar

from allranks.plan.file_tree import StoppedError

Result = TypeVar("Result")


class Stop:
    """Tells threads and coroutines to stop. Threads look at `is_set`; all else is used on the loop's thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._waiting: set[asyncio.Future[None]] = set()

    def is_set(self) -> bool:
        """Return whether to stop."""
        return self._event.is_set()

    def set(self) -> None:
        """Tell everybody to stop."""
        self._event.set()
        for waiting in self._waiting:
            if not waiting.done():
                waiting.set_result(None)

    async def or_result(self, task: asyncio.Task[Result]) -> Result:
        """Return the result of a task that others wait for too, and that goes on without this one.

        Raise StoppedError once this is set.
        """
        if self.is_set():
            raise StoppedError
        stopped = asyncio.get_running_loop().create_future()
        self._waiting.add(stopped)
        try:
            await asyncio.wait({task, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._waiting.discard(stopped)
        if task.done():
            return task.result()
        raise StoppedError


class StepStops:
    """What tells one step to stop.

    staging: its inputs are not read or copied any more
    saving:  its outputs are not either
    """

    def __init__(self) -> None:
        self.staging = Stop()
        self.saving = Stop()

    def set(self) -> None:
        """Stop both."""
        self.staging.set()
        self.saving.set()
