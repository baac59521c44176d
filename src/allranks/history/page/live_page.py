"""Keep the page of a run up to date during the run. An open page loads itself again every few seconds."""

import asyncio
import contextlib
import threading
import time
from pathlib import Path

from allranks.history.records import RunRecord
from allranks.history.store import Store
from allranks.workspace import write_file

NAME = "run.html"
"""The file of a run's page in the run's folder."""
_sleep = asyncio.sleep
_INTERVAL = 5.0
"""Minimum seconds between two updates."""
_SHARE = 20
"""Minimum ratio of the time between two updates to the duration of an update, so that updates use at most 5 % of a
core."""
_FIRST = 0.5
_FIRST_BY_STEP = 0.001
"""Seconds until the first update, and additional seconds for each step of the run, so that shorter runs are not slowed
down."""


class LivePage:
    """The page of one run, written from the run's start to its end.

    A thread reads the run from the store and writes the page. If that fails, the next update tries again: a page must
    not end a run.

    database: the store that contains the run
    known:    the run's secrets
    """

    def __init__(self, run: RunRecord, database: Path, known: frozenset[str] = frozenset()) -> None:
        self.path = Path(run.folder) / NAME
        self._run = run.id
        self._database = database
        self._known = known
        self._task: asyncio.Task[None] | None = None
        self._lock = threading.Lock()
        self._ended = False

    def start(self, steps: int) -> None:
        """Begin to update the page. Call it within the engine's event loop. steps: the number of the run's steps"""
        first = _FIRST + _FIRST_BY_STEP * steps
        self._task = asyncio.get_running_loop().create_task(self._update_until_cancelled(first))

    def finish(self, run: RunRecord) -> None:
        """Write the final page of a run that has ended. Raise OSError if it cannot be written."""
        from allranks.history.page.page import page  # takes 0.1 s to import, usually during the first update

        if self._task is not None:
            self._task.cancel()
        with self._lock:
            self._ended = True
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_file(self.path, page(run, time.time(), self._known))

    async def _update_until_cancelled(self, first: float) -> None:
        await _sleep(first)
        while True:
            begin = time.monotonic()
            with contextlib.suppress(Exception):
                await asyncio.to_thread(self._update)
            await _sleep(max(_INTERVAL, _SHARE * (time.monotonic() - begin)))

    def _update(self) -> None:
        with Store(self._database, reads=True) as store:
            run = store.run(self._run)
        from allranks.history.page.page import page  # takes 0.1 s to import, on this thread while the first step starts

        text = page(run, time.time(), self._known)
        with self._lock:
            if not self._ended:
                write_file(self.path, text)
