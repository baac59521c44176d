"""The one place that watches the folders, while a browser follows, and passes changes to the stream of events."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from starlette.requests import Request
from starlette.responses import StreamingResponse

from allranks_studio.server.access import Refusal
from allranks_studio.server.events import Event, Events

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
        self._events = Events()
        self._streams = 0
        self._watching: asyncio.Task[None] | None = None
        self._started: asyncio.Future[None] | None = None

    def add(self, *events: Event) -> None:
        """Add events that did not come from watching. Call it on the event loop."""
        if self._watching is not None:
            self._events.add(events)

    async def stream(self, request: Request) -> StreamingResponse:
        """Answer GET /api/events."""
        if self._streams >= MOST_STREAMS:
            raise Refusal(503, f"{MOST_STREAMS} pages follow the runs already", "close some of them")
        self._streams += 1
        last = request.headers.get("last-event-id", "")
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        return StreamingResponse(self._follow(last), media_type="text/event-stream", headers=headers)

    async def _follow(self, last: str) -> AsyncIterator[str]:
        try:
            if self._watching is None:
                self._started = asyncio.get_running_loop().create_future()
                self._watching = asyncio.create_task(self._watch(self._started))
            if self._started is not None:
                await self._started  # what is read from now on is not older than the first event
            async for text in self._events.follow(last):
                yield text
        finally:
            self._streams -= 1

    async def _watch(self, started: "asyncio.Future[None]") -> None:
        loop, rested = asyncio.get_running_loop(), 0.0
        with ThreadPoolExecutor(1, "studio-watch") as thread:
            try:
                looks = list(self._make())
                while rested < _REST:
                    found = await loop.run_in_executor(thread, lambda: [each for look in looks for each in look()])
                    if found:
                        self._events.add(found)
                    if not started.done():
                        started.set_result(None)
                    await asyncio.sleep(LOOK)
                    rested = 0.0 if self._streams else rested + LOOK
            finally:
                self._events.forget()
                self._watching = self._started = None
                if not started.done():
                    started.set_result(None)

    async def close(self) -> None:
        if self._watching is not None:
            self._watching.cancel()
