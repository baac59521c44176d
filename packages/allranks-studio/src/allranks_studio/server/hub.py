"""The one place that watches the folders, while a browser follows, and passes changes to the stream of events."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence

from starlette.requests import Request
from starlette.responses import StreamingResponse

from allranks_studio.server.access import Refusal
from allranks_studio.server.events import Event, Events

_LOG = logging.getLogger(__name__)
LOOK = 0.1
"""Seconds between two looks: no curve has more than 10 events a second."""
_REST = 10.0
"""Seconds without a browser after which the hub stops watching. A page that is loaded again is back sooner."""
MOST_STREAMS = 64

Look = Callable[[], Sequence[Event]]
"""Returns what has changed since the last call, on a thread of its own."""


class Hub:
    """Watch while somebody follows. make: returns the looks at the beginning of a time of watching"""

    def __init__(self, make: Callable[[], Iterable[Look]]) -> None:
        self._make = make
        self.events = Events()
        self._streams = 0
        self._watching: asyncio.Task[None] | None = None
        self._started = asyncio.Event()

    @property
    def is_watching(self) -> bool:
        return self._watching is not None

    def add(self, event: Event) -> None:
        """Add an event that did not come from watching. Call it on the event loop."""
        if self._watching is not None:
            self.events.add([event])

    async def stream(self, request: Request) -> StreamingResponse:
        """Answer GET /api/events."""
        if self._streams >= MOST_STREAMS:
            raise Refusal(503, f"{MOST_STREAMS} pages follow the runs already", "close some of them")
        last = request.headers.get("last-event-id") or request.query_params.get("last", "")
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self._follow(last), media_type="text/event-stream", headers=headers)

    async def close(self) -> None:
        """End all streams."""
        self.events.close()
        if self._watching is not None:
            self._watching.cancel()

    async def _follow(self, last: str) -> AsyncIterator[str]:
        self._streams += 1
        try:
            if self._watching is None:
                self._watching = asyncio.create_task(self._watch())
            await self._started.wait()  # what is read from now on is not older than the first event
            async for text in self.events.follow(last):
                yield text
        finally:
            self._streams -= 1

    async def _watch(self) -> None:
        """Watch until nobody has followed for a while. Each look has its own pace."""
        looks = list(self._make())
        try:
            await asyncio.gather(*map(self._look, looks))
            self._started.set()
            tasks = [asyncio.create_task(self._repeat(look)) for look in looks]
            try:
                rested = 0.0
                while rested < _REST:
                    await asyncio.sleep(_REST / 10)
                    rested = 0.0 if self._streams else rested + _REST / 10
            finally:
                for task in tasks:
                    task.cancel()
        finally:
            self._started.set()
            self.events.forget()
            self._watching, self._started = None, asyncio.Event()

    async def _repeat(self, look: Look) -> None:
        while True:
            await asyncio.sleep(LOOK)
            await self._look(look)

    async def _look(self, look: Look) -> None:
        try:
            found = await asyncio.to_thread(look)
        except Exception:
            _LOG.exception("a look failed")  # the next one may succeed
        else:
            self.events.add(found)
