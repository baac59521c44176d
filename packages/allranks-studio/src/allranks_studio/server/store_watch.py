"""Watch a workspace for what changes in its runs, without holding a lock or an open file between two looks."""

import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from allranks.errors import InputError
from allranks.history import curves, locks
from allranks.history.records import Status
from allranks.history.store import Store
from allranks_studio.server.answers import finite
from allranks_studio.server.events import Event
from allranks_studio.server.folders import Folder

_SHARE = 30
"""Minimum ratio of the time between two readings of the store to the duration of one: 3 % of a core at most."""
_PAUSE = 2.0
"""Seconds between two readings of a store that cannot be read, and two looks for engines that died."""
_MOST_ROWS = 20_000
"""Maximum new points of a reading. The next one reads the others."""
_MOST_POINTS = 250
"""Maximum points of a curve in an event. More are thinned."""

_ENDED = frozenset(status for status in Status if status.ended)


@dataclass
class _ActiveRun:
    """A run that has not ended. steps: digests of their records; ranks, logs: by step and rank"""

    steps: dict[str, bytes] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    ranks: dict[tuple[str, int], str] = field(default_factory=dict)
    logs: dict[tuple[str, int], str] = field(default_factory=dict)
    sizes: dict[tuple[str, int], int] = field(default_factory=dict)


class StoreWatch:
    """What was seen of the store of a folder. The first look only remembers it. Not thread-safe."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._mark: object = None
        self._next = 0.0
        self._next_engines = 0.0
        self._statuses: dict[str, str] | None = None
        self._active: dict[str, _ActiveRun] = {}
        self._dead: set[str] = set()
        self._row = self._last_run = 0
        self._next_scan = 0.0
        self._is_partial = False
        self._ledger: object = None

    def look(self) -> list[Event]:
        """Return what has changed since the last look."""
        first = self._statuses is None
        now, mark, events = time.monotonic(), _mark(self._folder.workspace.database), list[Event]()
        is_due = mark != self._mark or (self._is_partial and now >= self._next_scan)
        if is_due and now >= self._next:
            try:
                events += self._read()
                self._mark = mark  # as before the reading: later changes are read again
                self._next = time.monotonic() + _SHARE * (time.monotonic() - now)
            except (InputError, OSError, sqlite3.Error, ValueError, KeyError, TypeError):
                self._next = now + _PAUSE  # a request shows the error
        if now >= self._next_engines:
            self._next_engines = now + _PAUSE
            events += self._engines()
        events += self._logs()
        ledger = _mark(self._folder.workspace.root / "schedules.db")
        if ledger != self._ledger:
            self._ledger = ledger
            events.append({"kind": "schedule", "folder": self._folder.id})
        self._statuses = self._statuses or {}
        return [] if first else events

    def _read(self) -> list[Event]:
        events: list[Event] = []
        path = self._folder.workspace.database
        if not path.exists():
            return []
        with Store(path, reads=True) as store:
            connection = store.connection
            before, statuses = self._statuses, self._read_statuses(connection)
            before = statuses if before is None else before
            for run, status in statuses.items():
                if before.get(run) != status:
                    self._dead.discard(run)
                    events.append(self._event("run", run, status=status))
                if run in self._active or status not in _ENDED:
                    events += self._steps(connection, run, self._active.setdefault(run, _ActiveRun()))
            events += [self._event("run", run, status="removed") for run in before.keys() - statuses.keys()]
            self._active = {
                run: seen for run, seen in self._active.items() if statuses.get(run, Status.FAILED) not in _ENDED
            }
            events += self._points(connection, first=self._statuses is None)
            self._statuses = statuses
        return events

    def _read_statuses(self, connection: sqlite3.Connection) -> dict[str, str]:
        """Return the statuses of all runs. Most times, only those of new and active runs are read: of 5,000 runs, all
        take 40 ms. A run that is resumed or removed is noticed a little later."""
        where, begin = "", time.monotonic()
        values = self._last_run, json.dumps(list(self._active))
        self._is_partial = self._statuses is not None and begin < self._next_scan
        if self._is_partial:
            where = "WHERE rowid > ? OR id IN (SELECT value FROM json_each(?))"
        status = "CASE WHEN json_valid(record) THEN json_extract(record, '$.status') END"
        rows = connection.execute(f"SELECT id, {status}, rowid FROM run {where}", values if where else ()).fetchall()
        newest = max((row for _, _, row in rows), default=0)
        self._last_run = max(newest, self._last_run) if self._is_partial else newest
        found = {run: status for run, status, _ in rows if status}
        if self._is_partial:
            return {**(self._statuses or {}), **found}
        self._next_scan = time.monotonic() + 2 * _SHARE * (time.monotonic() - begin)
        return found

    def _steps(self, connection: sqlite3.Connection, run: str, seen: _ActiveRun) -> Iterator[Event]:
        for path, text in connection.execute("SELECT path, record FROM node WHERE run = ?", (run,)).fetchall():
            digest = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest()
            if seen.steps.get(path) == digest:
                continue
            seen.steps[path] = digest
            step = json.loads(text)
            seen.states[path] = step["status"]
            yield self._event("step", run, step=path, status=step["status"])
            for rank in step["ranks"]:
                place = path, rank["rank"]
                seen.logs[place] = rank["log"].replace("\0workspace/", f"{self._folder.workspace.root}/")
                if seen.ranks.get(place) != rank["status"]:
                    seen.ranks[place] = rank["status"]
                    yield self._event("rank", run, step=path, rank=rank["rank"], status=rank["status"])
            if step["status"] in _ENDED:
                yield from self._sizes(run, seen, path)

    def _points(self, connection: sqlite3.Connection, *, first: bool) -> Iterator[Event]:
        (last,) = connection.execute("SELECT ifnull(max(rowid), 0) FROM point").fetchone()
        if first or last < self._row:
            self._row = last
        query = "SELECT rowid, run, node, metric, x, value FROM point WHERE rowid > ? ORDER BY rowid LIMIT ?"
        found: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
        for row, run, node, metric, x, value in connection.execute(query, (self._row, _MOST_ROWS)):
            self._row = row
            found.setdefault((run, node, metric), []).append((x, float("nan") if value is None else value))
        for (run, node, metric), points in found.items():
            thin = curves.thin(points, _MOST_POINTS // 4)
            values: dict[str, Any] = {"x": [x for x, _ in thin], "y": [finite(y) for _, y in thin]}
            yield self._event("points", run, step=node, metric=metric, **values)

    def _logs(self) -> Iterator[Event]:
        for run, seen in self._active.items():
            for path, status in seen.states.items():
                if status in (Status.RUNNING, Status.PREPARING):
                    yield from self._sizes(run, seen, path)

    def _sizes(self, run: str, seen: _ActiveRun, step: str) -> Iterator[Event]:
        """Yield the new sizes of the logs of a step."""
        for place, log in seen.logs.items():
            if place[0] == step and (size := _size(log)) != seen.sizes.get(place, 0):
                seen.sizes[place] = size
                yield self._event("log", run, step=step, rank=place[1], size=size)

    def _engines(self) -> Iterator[Event]:
        """Yield the runs whose engine has died."""
        for run in self._active.keys() - self._dead:
            if locks.holder(self._folder.workspace.run_folder(run)) is None:
                self._dead.add(run)
                yield self._event("run", run, status=str(Status.INTERRUPTED))

    def _event(self, kind: str, run: str, **values: Any) -> Event:
        return {"kind": kind, "folder": self._folder.id, "run": run, **values}


def _mark(path: Path) -> object:
    """Return what differs after every change of a database."""
    found = []
    for suffix in ("", "-wal"):
        try:
            status = os.stat(f"{path}{suffix}")
            found.append((status.st_ino, status.st_mtime_ns, status.st_size))
        except OSError:
            found.append((0, 0, 0))
    return found


def _size(log: str) -> int:
    try:
        return os.lstat(log).st_size
    except (OSError, ValueError):
        return 0
