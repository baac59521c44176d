"""Recent events, which any number of browsers follow, each at its own speed."""

import asyncio
import json
import secrets
from collections import deque
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

Event = Mapping[str, Any]
"""One of api.ts's Event, as plain data."""

MOST = 4096
_LARGEST = 8 << 20
"""Maximum bytes of the events that are held."""
_LARGEST_EVENT = 1 << 18
BEAT = 15.0
"""Seconds after which a silent stream sends a comment, so that a lost connection is noticed."""


class Events:
    """The last events. A reader that falls behind them is told to read everything again: it never makes the server
    wait, and the server holds nothing for it. Only for the event loop's thread."""

    def __init__(self) -> None:
        self._texts: deque[str] = deque()
        self._bytes = 0
        self._last = 0
        """The number of the last event."""
        self._start = secrets.token_hex(4)
        """Distinguishes ids of this server from those of an earlier one."""
        self._added = asyncio.Event()
        self._closed = False

    def __len__(self) -> int:
        return len(self._texts)

    def close(self) -> None:
        """End every reader."""
        self._closed = True
        self._added.set()

    def add(self, events: Sequence[Event]) -> None:
        for event in events:
            text = json.dumps(event, ensure_ascii=True, separators=(",", ":"))
            text = text if len(text) <= _LARGEST_EVENT else '{"kind":"reset"}'
            self._texts.append(text)
            self._bytes += len(text)
            self._last += 1
        while len(self._texts) > MOST or self._bytes > _LARGEST:
            self._bytes -= len(self._texts.popleft())
        if events:
            self._added.set()
            self._added = asyncio.Event()

    def forget(self) -> None:
        """Remove all events: nobody has followed for a while, so the next readers read everything again."""
        self._texts.clear()
        self._bytes = 0
        self._start = secrets.token_hex(4)

    async def follow(self, last: str = "") -> AsyncIterator[str]:
        """Yield the events after an id, as text of a stream of server-sent events. last: "" for only new ones"""
        yield f"id: {self._start}-{self._last}\n\n"
        start, _, number = last.partition("-")
        place = self._last
        if last:
            place = int(number) if start == self._start and number.isdecimal() and len(number) < 20 else -1
        while not self._closed:
            added, oldest = self._added, self._last - len(self._texts)
            if not oldest <= place <= self._last:
                yield self._text(self._last, '{"kind":"reset"}')
                place = self._last
            elif place < self._last:
                first = place - oldest
                batch = [self._texts[at] for at in range(first, min(first + 256, len(self._texts)))]
                yield "".join(self._text(place + 1 + at, text) for at, text in enumerate(batch))
                place += len(batch)
            else:
                try:
                    await asyncio.wait_for(added.wait(), BEAT)
                except TimeoutError:
                    yield ": beat\n\n"

    def _text(self, number: int, text: str) -> str:
        return f"id: {self._start}-{number}\ndata: {text}\n\n"
