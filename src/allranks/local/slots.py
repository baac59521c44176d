"""How much of this machine is free: steps wait for it in the order in which they became ready."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections import deque
from collections.abc import AsyncIterator


class Slots:
    """A number of ranks that may run at once. A step that needs more than there are runs alone."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._free = total
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @contextlib.asynccontextmanager
    async def take(self, count: int) -> AsyncIterator[None]:
        """Holds `count` slots as long as the block runs; waits until they are free."""
        count = min(count, self._total)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((count, turn))
        self._admit()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._give(count)
            else:
                self._waiting.remove((count, turn))
                self._admit()
            raise
        try:
            yield
        finally:
            self._give(count)

    def _give(self, count: int) -> None:
        self._free += count
        self._admit()

    def _admit(self) -> None:
        while self._waiting and self._waiting[0][0] <= self._free:
            count, turn = self._waiting.popleft()
            self._free -= count
            turn.set_result(None)


class Machines:
    """Indexes of the run's emulated machines; a machine that a step gave back is used again, like a warm cluster's."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._made = 0

    def take(self, count: int) -> list[int]:
        """The lowest free indexes."""
        while len(self._free) < count:
            heapq.heappush(self._free, self._made)
            self._made += 1
        return [heapq.heappop(self._free) for _ in range(count)]

    def give(self, indexes: list[int]) -> None:
        """Says that these are free again."""
        for index in indexes:
            heapq.heappush(self._free, index)
