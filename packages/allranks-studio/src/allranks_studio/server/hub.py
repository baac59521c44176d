"""The one place that watches the folders, while a browser follows, and passes changes to the stream of events."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence

from starlette.requests import Request
from starlette.responses import StreamingResponse

from allranks_studio.server.events import Event, Events

_LOG = logging.getLogger(__name__)
LOOK = 0.1
"""Seconds between two looks: no curve has more than 10 events a second."""

Look = Callable[[], Sequence[Event]]
"""Returns what has changed since the last call, on a thread of its own."""


class Hub:
    """Watch while somebody follows. make: returns the looks at the beginning of a time of watching"""

    def __init__(self, make: Callable[[], Iterable[Look]]) -> None:
        self._make = make
        self._streams = 0
        self.events = Events()
        """Those of the current time of watching. A browser that has followed an earlier one reads everything again."""
        self.watching: asyncio.Task[None] | None = None
        self._begun = asyncio.Event()

    async def stream(self, request: Request) -> StreamingResponse:
        """Answer GET /api/events."""
        last = request.headers.get("last-event-id") or request.query_params.get("last", "")
        return StreamingResponse(self._follow(last), media_type="text/event-stream")

    async def _follow(self, last: str) -> AsyncIterator[str]:
        self._streams += 1
        try:
            if self.watching is None:
                self.events, self._begun = Events(), asyncio.Event()
                self.watching = asyncio.create_task(self._watch(self.events, self._begun))
            await self._begun.wait()  # what is read from now on is not older than the first event
            async for text in self.events.follow(last):
                yield text
        finally:
            self._streams -= 1
            if self.watching is not None and not self._streams:
                self.watching.cancel()
                self.watching = None

    async def _watch(self, events: Events, begun: asyncio.Event) -> None:
        """Add the changes to the events. Each look has its own pace."""

        async def look_again(look: Look) -> None:
            while True:
                await asyncio.sleep(LOOK)
                await self._look(look, events)

        looks = list(self._make())
        await asyncio.gather(*(self._look(look, events) for look in looks))
        begun.set()
        await asyncio.gather(*map(look_again, looks))

    async def _look(self, look: Look, events: Events) -> None:
        try:
            events.add(await asyncio.to_thread(look))
        except Exception:
            _LOG.exception("a look failed")  # the next one may succeed
