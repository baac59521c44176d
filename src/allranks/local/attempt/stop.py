"""Stop reading and copying the files of one step, in threads and in coroutines."""

from __future__ import annotations

import asyncio
import threading
from typing import TypeVar

from allranks.plan.file_tree import StoppedError

Result = TypeVar("Result")


class Stop:
    """A request to stop, for threads and coroutines. Threads may call `is_set`; use all else on the loop's thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._waiting: set[asyncio.Future[None]] = set()

    def is_set(self) -> bool:
        """Return whether a stop was requested."""
        return self._event.is_set()

    def set(self) -> None:
        """Request the stop."""
        self._event.set()
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    async def or_result(self, task: asyncio.Task[Result]) -> Result:
        """Return the result of a task for which others may wait too. The task continues if this raises.

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
    """The requests to stop one step.

    staging: stops reading and copying its inputs
    saving:  stops reading and copying its outputs
    """

    def __init__(self) -> None:
        self.staging = Stop()
        self.saving = Stop()

    def set(self) -> None:
        """Stop both."""
        self.staging.set()
        self.saving.set()
