"""The stream of events: what changes in the folders."""

import asyncio
import json
import logging
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import StreamingResponse

LOOK = 0.1
"""Seconds between two looks: no step has more than 10 events of points a second."""
MOST = 4096
LARGEST = 1 << 14
"""Maximum bytes of an event. With MOST, it bounds what the server holds."""
_RESET = '{"kind":"reset"}'
_LOG = logging.getLogger(__name__)

Event = Mapping[str, Any]
"""One of api.ts's Event, as plain data."""
Look = Callable[[], Sequence[Event]]
"""Returns what has changed since the last call. It is called in a thread."""


class Events:
    """The recent events, which any number of browsers follow, each at its own speed.

    A browser that falls behind is told to read everything again: it never makes the server wait, and the server holds
    nothing for it. Not thread-safe: call from the event loop.
    """

    def __init__(self, looks: Sequence[Look]) -> None:
        self._looks = looks
        self._followed = asyncio.Event()
        self._begun = asyncio.Event()
        self._added = asyncio.Event()
        self.texts: deque[str] = deque(maxlen=MOST)
        self._last = 0
        """The number of the last event."""
        self._start = secrets.token_hex(4)
        """Distinguishes the ids of this server from those of another one."""

    def add(self, events: Sequence[Event]) -> None:
        for event in events:
            text = json.dumps(event, ensure_ascii=True, separators=(",", ":"))
            self.texts.append(text if len(text) <= LARGEST else _RESET)
        self._last += len(events)
        if events:
            self._added.set()
            self._added = asyncio.Event()

    async def watch(self) -> None:
        """Add what the looks return, from the first browser that follows until this task is canceled. Each look has its
        own pace."""

        async def look_again(look: Look) -> None:
            while True:
                await asyncio.sleep(LOOK)
                await self._look(look)

        await self._followed.wait()
        await asyncio.gather(*map(self._look, self._looks))
        self._begun.set()
        await asyncio.gather(*map(look_again, self._looks))

    async def _look(self, look: Look) -> None:
        try:
            self.add(await asyncio.to_thread(look))
        except Exception:
            _LOG.exception("a look failed")  # the next one may succeed

    async def stream(self, request: Request) -> StreamingResponse:
        """Answer GET /api/events."""
        last = request.headers.get("last-event-id") or request.query_params.get("last", "")
        return StreamingResponse(self._follow(last), media_type="text/event-stream")

    async def _follow(self, last: str) -> AsyncIterator[str]:
        """Yield the events after an id. last: "" for only new ones"""
        self._followed.set()
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
