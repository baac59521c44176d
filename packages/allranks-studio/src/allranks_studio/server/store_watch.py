"""Watch a workspace for what changes in its runs, without holding a lock or an open file between two looks."""

import json
import math
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
class _Step:
    """A step of a run that has not ended. text: its record; ranks, logs and sizes of logs: by rank"""

    text: str = ""
    status: str = ""
    ranks: dict[int, str] = field(default_factory=dict)
    logs: dict[int, str] = field(default_factory=dict)
    sizes: dict[int, int] = field(default_factory=dict)


class StoreWatch:
    """What was seen of the store of a folder. The first look only remembers it. Not thread-safe."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._marks: dict[str, object] = {}
        self._next = self._next_engines = self._next_scan = 0.0
        self._statuses: dict[str, str] | None = None
        self._active: dict[str, dict[str, _Step]] = {}
        """The steps of the runs that have not ended."""
        self._dead: set[str] = set()
        self._row = self._last_run = 0

    def look(self) -> list[Event]:
        """Return what has changed since the last look."""
        is_first = self._statuses is None
        root, begin, events = self._folder.workspace.root, time.monotonic(), list[Event]()
        store, ledger = _mark(self._folder.workspace.database), _mark(root / "schedules.db")
        if begin >= self._next and store != self._marks.get("store"):
            try:
                if self._read(events):
                    self._marks["store"] = store  # as before the reading: later changes are read again
                self._next = time.monotonic() + _SHARE * (time.monotonic() - begin)
            except (InputError, OSError, sqlite3.Error, ValueError, KeyError, TypeError):
                self._next = begin + _PAUSE  # a request shows the error
        if begin >= self._next_engines:
            self._next_engines = begin + _PAUSE
            events += self._engines()
        for run, steps in self._active.items():
            for path, step in steps.items():
                if step.status in (Status.RUNNING, Status.PREPARING):
                    events += self._sizes(run, path, step)
        if ledger != self._marks.get("ledger"):
            self._marks["ledger"] = ledger
            events.append({"kind": "schedule", "folder": self._folder.id})
        self._statuses = self._statuses or {}
        return [] if is_first else events

    def _read(self, events: list[Event]) -> bool:
        """Add what has changed in the store. Return whether the statuses of all runs were read."""
        if not self._folder.workspace.database.exists():
            return True
        with Store(self._folder.workspace.database, reads=True) as store:
            connection = store.connection
            statuses, is_whole = self._read_statuses(connection)
            before = statuses if self._statuses is None else self._statuses
            for run, status in statuses.items():
                if before.get(run) != status:
                    self._dead.discard(run)
                    events.append(self._event("run", run, status=status))
                if run in self._active or status not in _ENDED:
                    events += self._steps(connection, run, self._active.setdefault(run, {}))
            events += [self._event("run", run, status="removed") for run in before.keys() - statuses.keys()]
            self._active = {
                run: steps for run, steps in self._active.items() if statuses.get(run, Status.FAILED) not in _ENDED
            }
            events += self._points(connection)
            self._statuses = statuses
        return is_whole

    def _read_statuses(self, connection: sqlite3.Connection) -> tuple[dict[str, str], bool]:
        """Return the statuses of all runs, and whether all were read. Most times, only those of new and active runs
        are: of 5,000 runs, all take 40 ms. A run that is resumed or removed is noticed a little later."""
        begin, known, after = time.monotonic(), self._statuses, self._last_run
        is_whole = known is None or begin >= self._next_scan
        if is_whole:
            known, after = {}, 0
        status = "CASE WHEN json_valid(record) THEN json_extract(record, '$.status') END"
        query = f"SELECT id, {status}, rowid FROM run WHERE rowid > ? OR id IN (SELECT value FROM json_each(?))"
        rows = connection.execute(query, (after, json.dumps(list(self._active)))).fetchall()
        self._last_run = max((row for _, _, row in rows), default=after)
        if is_whole:
            self._next_scan = time.monotonic() + 2 * _SHARE * (time.monotonic() - begin)
        return {**(known or {}), **{run: status for run, status, _ in rows if status}}, is_whole

    def _steps(self, connection: sqlite3.Connection, run: str, steps: dict[str, _Step]) -> Iterator[Event]:
        for path, text in connection.execute("SELECT path, record FROM node WHERE run = ?", (run,)).fetchall():
            step = steps.setdefault(path, _Step())
            if step.text == text:
                continue
            record = json.loads(text)
            step.text, step.status = text, record["status"]
            yield self._event("step", run, step=path, status=step.status)
            for rank in record["ranks"]:
                number, status = rank["rank"], rank["status"]
                step.logs[number] = rank["log"].replace("\0workspace/", f"{self._folder.workspace.root}/")
                if step.ranks.get(number) != status:
                    step.ranks[number] = status
                    yield self._event("rank", run, step=path, rank=number, status=status)
            yield from self._sizes(run, path, step)

    def _points(self, connection: sqlite3.Connection) -> Iterator[Event]:
        (last,) = connection.execute("SELECT ifnull(max(rowid), 0) FROM point").fetchone()
        if self._statuses is None or last < self._row:
            self._row = last
        query = "SELECT rowid, run, node, metric, x, value FROM point WHERE rowid > ? ORDER BY rowid LIMIT ?"
        found: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
        for row, run, node, metric, x, value in connection.execute(query, (self._row, _MOST_ROWS)):
            self._row = row
            found.setdefault((run, node, metric), []).append((x, math.nan if value is None else value))
        for (run, node, metric), points in found.items():
            thin = curves.thin(points, _MOST_POINTS // 4)
            values: dict[str, Any] = {"x": [x for x, _ in thin], "y": [finite(y) for _, y in thin]}
            yield self._event("points", run, step=node, metric=metric, **values)

    def _sizes(self, run: str, path: str, step: _Step) -> Iterator[Event]:
        """Yield the new sizes of the logs of a step."""
        for rank, log in step.logs.items():
            if (size := log_size(log)) != step.sizes.get(rank, 0):
                step.sizes[rank] = size
                yield self._event("log", run, step=path, rank=rank, size=size)

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


def log_size(log: str) -> int:
    """Return the size of a log; 0 if there is none."""
    try:
        return os.lstat(log).st_size
    except (OSError, ValueError):
        return 0
