"""Keep the page of a run up to date during the run.

``run.html`` is complete at any time. Beside it is ``run.live.js``, which an open page loads again and again: for a page
opened from disk, browsers allow no other kind of request. The file is removed when the run has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import threading
import time
from pathlib import Path
from typing import TypeVar

from allranks.history import workspace
from allranks.history.formatting import clock
from allranks.history.observer import Observer
from allranks.history.page.log_excerpts import LogExcerpts
from allranks.history.page.page import NAME, Live, compile_templates, document, main, starting, write_page
from allranks.history.records import RunRecord, StepRecord

Record = TypeVar("Record")

_sleep = asyncio.sleep
_INTERVAL = 2.0
"""Minimum seconds between two updates."""
_SHARE = 20
"""The time between two updates is at least this many times the duration of an update: at most 5 % of a core."""
_ALIVE = 10.0
"""Seconds after which the page is written even if nothing has changed, as a sign that the engine is alive."""
_FIRST = 0.5
_FIRST_BY_STEP = 0.001
"""Minimum seconds until the first update, and for each step of the run. Shorter runs are not slowed down."""


class LivePage(Observer):
    """The page of one run, written from the run's start to its end.

    The engine's thread copies what has changed. Another thread renders and writes the page. A failure of an update is
    ignored, because the next one may succeed, and because a page must not end a run.

    folder: the run's folder
    known:  the run's secrets
    """

    def __init__(
        self, folder: Path, known: frozenset[str] = frozenset(), interval: float = _INTERVAL, alive: float = _ALIVE
    ) -> None:
        self.path = folder / NAME
        self._script = folder / Live.SCRIPT
        self._interval = interval
        self._alive = alive
        self._known = known
        self._logs = LogExcerpts(known)
        self._copy: _Copy | None = None
        self._task: asyncio.Task[None] | None = None
        self._lock = threading.Lock()
        self._ended = False
        self._written = -math.inf

    def started(self, run: RunRecord) -> None:
        """Write a page without contents, and begin to update it. Call it within the engine's event loop."""
        self._copy = _Copy(run)
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._save(run, starting(run), time.time(), self._alive)
        self._task = asyncio.get_running_loop().create_task(self._update_until_cancelled())

    def changed(self, run: RunRecord, step: StepRecord) -> None:  # noqa: ARG002
        self._mark(step)

    progressed = changed

    def noted(self, run: RunRecord, step: StepRecord | None, text: str) -> None:  # noqa: ARG002
        self._mark(step)

    def _mark(self, step: StepRecord | None) -> None:
        if self._copy is not None:
            self._copy.changed.add("" if step is None else step.name)

    def finish(self, run: RunRecord) -> None:
        """Write the final page of a run that has ended. Raise OSError if it cannot be written."""
        with self._lock:
            self._ended = True
        if self._task is not None:
            self._task.cancel()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_page(run, self.path, known=self._known)
        self._script.unlink(missing_ok=True)

    async def _update_until_cancelled(self) -> None:
        """Update the page whenever something has changed."""
        assert self._copy is not None
        await _sleep(max(min(_FIRST, self._interval), _FIRST_BY_STEP * self._copy.size))
        took = 0.0
        with contextlib.suppress(Exception):
            await asyncio.to_thread(compile_templates)
        while True:
            is_due = bool(self._copy.changed)
            try:
                took = await asyncio.to_thread(self._update, self._copy.take(), is_due)
            except Exception:
                self._mark(None)  # try again
            await _sleep(max(self._interval, _SHARE * took))

    def _update(self, run: RunRecord, is_due: bool) -> float:
        """Write the page, and return how many seconds that took. is_due: whether the run has changed; otherwise its
        logs may have"""
        begin = time.monotonic()
        if is_due or begin - self._written >= self._alive or self._logs.changed():
            now = time.time()
            text = main(run, now, self._logs, lambda: self._ended)
            next_update = _SHARE * (time.monotonic() - begin)
            self._save(run, text, now, max(self._interval, self._alive, next_update))
            self._written = begin
        return time.monotonic() - begin

    def _save(self, run: RunRecord, text: str, now: float, within: float) -> None:
        """Write the page and the script, unless the run has ended. within: seconds until the next update"""
        live = Live(now, within)
        page = document(run, text, live)
        script = live_script(run, text, live)
        with self._lock:
            if self._ended:
                return
            workspace.write_file(self._script, script)
            workspace.write_file(self.path, page)


def live_script(run: RunRecord, text: str, live: Live) -> str:
    """Return the script that updates an open page."""
    values = {
        "title": f"{run.display_name or run.name} · {run.status}",
        "written": live.written,
        "within": live.within,
        "clock": clock(live.written),
        "main": text,
    }
    return f"allranksUpdate({json.dumps(values, ensure_ascii=False)});\n"


class _Copy:
    """A copy of a run's record for another thread. Only steps that have changed or are running are copied again.

    changed: the names of the steps that have changed; "" for the run itself
    """

    def __init__(self, run: RunRecord) -> None:
        self._run = run
        self._steps: dict[str, StepRecord] = {}
        self.changed: set[str] = {""}

    @property
    def size(self) -> int:
        return len(self._run.steps)

    def take(self) -> RunRecord:
        """Copy the current state of the run. Call it on the engine's thread."""
        steps = []
        for step in self._run.steps:
            copied = self._steps.get(step.name)
            if copied is None or step.name in self.changed or (step.started and not copied.status.ended):
                copied = self._steps[step.name] = _copied(step)
            steps.append(copied)
        self.changed.clear()
        run = _shallow(self._run)
        run.__dict__.pop("_by_name", None)
        run.steps = steps
        run.notes, run.inputs, run.outputs = list(run.notes), dict(run.inputs), dict(run.outputs)
        return run


def _copied(step: StepRecord) -> StepRecord:
    copied = _shallow(step)
    if not step.started:
        return copied  # its lists are empty, and it is copied again when it has started
    copied.ranks = [_shallow(rank) for rank in step.ranks]
    copied.outputs = [_shallow(output) for output in step.outputs]
    copied.metrics = {name: list(points) for name, points in step.metrics.items()}
    copied.usage = {instance: list(samples) for instance, samples in step.usage.items()}
    copied.inputs, copied.notes, copied.artifacts = dict(step.inputs), list(step.notes), list(step.artifacts)
    return copied


def _shallow(record: Record) -> Record:
    """Return a copy of a dataclass, several times faster than `copy.copy`."""
    copied: Record = object.__new__(type(record))
    copied.__dict__.update(record.__dict__)
    return copied
