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
_LARGEST = 1 << 14
"""Maximum bytes of an event. With MOST, it bounds what the server holds. 250 points have 10 kB."""
_RESET = '{"kind":"reset"}'


class Events:
    """The last events. A reader that falls behind them is told to read everything again: it never makes the server
    wait, and the server holds nothing for it. Only for the event loop's thread."""

    def __init__(self) -> None:
        self._texts: deque[str] = deque(maxlen=MOST)
        self._last = 0
        """The number of the last event."""
        self._start = secrets.token_hex(4)
        """Distinguishes these ids from those of other objects."""
        self._added = asyncio.Event()

    def __len__(self) -> int:
        return len(self._texts)

    def add(self, events: Sequence[Event]) -> None:
        for event in events:
            text = json.dumps(event, ensure_ascii=True, separators=(",", ":"))
            self._texts.append(text if len(text) <= _LARGEST else _RESET)
        self._last += len(events)
        if events:
            self._added.set()
            self._added = asyncio.Event()

    async def follow(self, last: str = "") -> AsyncIterator[str]:
        """Yield the events after an id, as text of a stream of server-sent events. last: "" for only new ones"""
        yield f"id: {self._start}-{self._last}\n\n"
        start, _, number = last.partition("-")
        place = self._last
        if last:
            place = int(number) if start == self._start and number.isdecimal() and len(number) < 20 else -1
        while True:
            added, oldest = self._added, self._last - len(self._texts)
            if not oldest <= place <= self._last:
                place = self._last
                yield f"id: {self._start}-{place}\ndata: {_RESET}\n\n"
            elif place < self._last:
                place += 1
                yield f"id: {self._start}-{place}\ndata: {self._texts[place - oldest - 1]}\n\n"
            else:
                await added.wait()
