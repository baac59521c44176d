"""The stream of events: what changes in the folders, which are watched while a browser follows."""

import asyncio
import json
import logging
import math
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import StreamingResponse

LOOK = 0.1
"""Seconds between two looks: no curve has more than 10 events a second."""
MOST = 4096
_LARGEST = 1 << 14
"""Maximum bytes of an event. With MOST, it bounds what the server holds. 250 points have 10 kB."""
_RESET = '{"kind":"reset"}'
_LOG = logging.getLogger(__name__)

Event = Mapping[str, Any]
"""One of api.ts's Event, as plain data."""
Look = Callable[[], Sequence[Event]]
"""Returns what has changed since the last call, on a thread of its own."""


def finite(value: float | None) -> float | None:
    """Return a number that JSON has, or None."""
    return value if value is not None and math.isfinite(value) else None


class Events:
    """The recent events, which any number of browsers follow, each at its own speed.

    A browser that falls behind is told to read everything again: it never makes the server wait, and the server holds
    nothing for it. So is one that comes back after nobody has followed. Only for the event loop's thread.

    make: returns the looks at the beginning of a time of watching
    """

    def __init__(self, make: Callable[[], Iterable[Look]]) -> None:
        self._make = make
        self._streams = 0
        self.watching: asyncio.Task[None] | None = None
        self._begun = asyncio.Event()
        self._added = asyncio.Event()
        self.texts: deque[str] = deque()
        self._last = 0
        """The number of the last event."""
        self._start = ""
        """Distinguishes the ids of a time of watching from those of others."""

    def add(self, events: Sequence[Event]) -> None:
        for event in events:
            text = json.dumps(event, ensure_ascii=True, separators=(",", ":"))
            self.texts.append(text if len(text) <= _LARGEST else _RESET)
        self._last += len(events)
        if events:
            self._added.set()
            self._added = asyncio.Event()

    async def stream(self, request: Request) -> StreamingResponse:
        """Answer GET /api/events."""
        last = request.headers.get("last-event-id") or request.query_params.get("last", "")
        return StreamingResponse(self._follow(last), media_type="text/event-stream")

    async def _follow(self, last: str) -> AsyncIterator[str]:
        """Yield the events after an id. last: "" for only new ones"""
        self._streams += 1
        try:
            if self.watching is None:
                self.texts, self._start, self._begun = deque(maxlen=MOST), secrets.token_hex(4), asyncio.Event()
                self.watching = asyncio.create_task(self._watch())
            await self._begun.wait()  # what is read from now on is not older than the first event
            yield f"id: {self._start}-{self._last}\n\n"
            start, _, number = last.partition("-")
            is_known = start == self._start and number.isdecimal() and len(number) < 20
            place = int(number) if is_known else -1 if last else self._last
            while True:
                added, oldest = self._added, self._last - len(self.texts)
                if not oldest <= place <= self._last:
                    place = self._last
                    yield f"id: {self._start}-{place}\ndata: {_RESET}\n\n"
                elif place < self._last:
                    place += 1
                    yield f"id: {self._start}-{place}\ndata: {self.texts[place - oldest - 1]}\n\n"
                else:
                    await added.wait()
        finally:
            self._streams -= 1
            if self.watching is not None and not self._streams:
                self.watching.cancel()
                self.watching = None

    async def _watch(self) -> None:
        """Add the changes. Each look has its own pace."""

        async def look_again(look: Look) -> None:
            while True:
                await asyncio.sleep(LOOK)
                await self._look(look)

        looks = list(self._make())
        await asyncio.gather(*map(self._look, looks))
        self._begun.set()
        await asyncio.gather(*map(look_again, looks))

    async def _look(self, look: Look) -> None:
        try:
            self.add(await asyncio.to_thread(look))
        except Exception:
            _LOG.exception("a look failed")  # the next one may succeed
