"""Watch a workspace for what changes in its runs, without holding a lock or an open file between two looks."""

import json
import math
import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from allranks.errors import InputError
from allranks.history import curves, locks
from allranks.history.records import Status
from allranks.history.store import Store
from allranks_studio.server.events import Event, finite
from allranks_studio.server.folders import Folder

_SHARE = 30
"""Minimum ratio of the time between two readings of the store to the duration of one: 3 % of a core at most."""
_PAUSE = 2.0
"""Seconds between two readings of a store that cannot be read, and two looks for engines that died."""
_MOST_ROWS = 20_000
"""Maximum new points of a reading. The next one reads the others."""
_MOST_POINTS = 250
"""Maximum points of a curve in an event. More are thinned."""

_NAMES = ("kind", "run", "step", "rank")
_Thing: TypeAlias = tuple[str | int, ...]
"""What has a state: the first of _NAMES, such as ("rank", RUN, STEP, RANK)."""
_ENDED = frozenset(status for status in Status if status.ended)


class StoreWatch:
    """What was seen of the store of a folder. The first look only remembers it. Not thread-safe."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._states: dict[_Thing, str | int] = {}
        """The last statuses of runs, steps and ranks, and the sizes of logs."""
        self._statuses: dict[str, str] | None = None
        """Of all runs, as stored. An engine that has died has not changed its run's."""
        self._active: set[str] = set()
        self._dead: set[str] = set()
        self._steps: dict[_Thing, tuple[str, dict[str, Any]]] = {}
        """The records of steps, as text and as data."""
        self._logs: dict[_Thing, str] = {}
        """The paths of logs that may grow."""
        self._marks: dict[str, object] = {}
        self._next = self._next_engines = self._next_scan = 0.0
        self._row = self._last_run = 0

    def look(self) -> list[Event]:
        """Return what has changed since the last look."""
        is_first, begin, workspace = self._statuses is None, time.monotonic(), self._folder.workspace
        states, events = dict[_Thing, str | int](), list[Event]()
        store, ledger = _mark(workspace.database), _mark(workspace.root / "schedules.db")
        if begin >= self._next and store != self._marks.get("store"):
            try:
                if self._read(states, events):
                    self._marks["store"] = store  # as before the reading: later changes are read again
                self._next = time.monotonic() + _SHARE * (time.monotonic() - begin)
            except (InputError, OSError, sqlite3.Error, ValueError, KeyError, TypeError):
                self._next = begin + _PAUSE  # a request shows the error
        self._statuses = self._statuses or {}
        if begin >= self._next_engines:
            self._next_engines = begin + _PAUSE
            self._dead = set(filter(self._is_dead, self._active))
        for run in self._active:
            states["run", run] = str(Status.INTERRUPTED) if run in self._dead else self._statuses[run]
        states |= {log: log_size(path) for log, path in self._logs.items()}
        changes = [
            self._event(thing, **{"size" if thing[0] == "log" else "status": state})
            for thing, state in states.items()
            if self._states.get(thing, 0) != state
        ]
        self._states |= states
        if ledger != self._marks.get("ledger"):
            self._marks["ledger"] = ledger
            events.append({"kind": "schedule", "folder": self._folder.id})
        return [] if is_first else changes + events

    def _is_dead(self, run: str) -> bool:
        """Return whether a run had an engine, which has died."""
        folder = self._folder.workspace.run_folder(run)
        return (folder / locks.NAME).exists() and locks.holder(folder) is None

    def _read(self, states: dict[_Thing, str | int], events: list[Event]) -> bool:
        """Add the states of runs, steps and ranks, and events of other changes. Return whether all runs were read."""
        if not self._folder.workspace.database.exists():
            return True
        with Store(self._folder.workspace.database, reads=True) as store:
            found, is_whole = self._read_statuses(store.connection)
            events += self._points(store.connection)
            statuses, logs = {**({} if is_whole else self._statuses or {}), **found}, dict[_Thing, str]()
            running = {run for run in self._active | found.keys() if statuses.get(run, Status.FAILED) not in _ENDED}
            for run in self._active | running:
                self._read_steps(store.connection, run, states, logs)
        states |= {("run", run): status for run, status in found.items()}
        for run in (self._statuses or {}).keys() - statuses.keys():
            self._states.pop(("run", run), None)
            events.append(self._event(("run", run), status="removed"))
        self._statuses, self._active, self._logs = statuses, running, logs
        return is_whole

    def _read_statuses(self, connection: sqlite3.Connection) -> tuple[dict[str, str], bool]:
        """Return the statuses of all runs, or of new and active ones, and whether all were read: of 5,000 runs, all
        take 40 ms. A run that is resumed or removed is noticed a little later."""
        begin = time.monotonic()
        is_whole = self._statuses is None or begin >= self._next_scan
        after = 0 if is_whole else self._last_run
        status = "CASE WHEN json_valid(record) THEN json_extract(record, '$.status') END"
        query = f"SELECT id, {status}, rowid FROM run WHERE rowid > ? OR id IN (SELECT value FROM json_each(?))"
        rows = connection.execute(query, (after, json.dumps(list(self._active)))).fetchall()
        self._last_run = max((row for _, _, row in rows), default=after)
        if is_whole:
            self._next_scan = time.monotonic() + 2 * _SHARE * (time.monotonic() - begin)
        return {run: status for run, status, _ in rows if status}, is_whole

    def _read_steps(
        self, connection: sqlite3.Connection, run: str, states: dict[_Thing, str | int], logs: dict[_Thing, str]
    ) -> None:
        """Add the states of the steps and ranks of a run, and the logs of those that run or have just ended."""
        for path, text in connection.execute("SELECT path, record FROM node WHERE run = ?", (run,)).fetchall():
            before, step = self._steps.get((run, path), ("", {}))
            if text != before:
                step = json.loads(text)
                self._steps[run, path] = text, step
            states["step", run, path] = step["status"]
            for rank in step["ranks"]:
                states["rank", run, path, rank["rank"]] = rank["status"]
                if text != before or step["status"] not in _ENDED:
                    log = rank["log"].replace("\0workspace/", f"{self._folder.workspace.root}/")
                    logs["log", run, path, rank["rank"]] = log

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
            yield self._event(("points", run, node), metric=metric, **values)

    def _event(self, thing: _Thing, **values: Any) -> Event:
        return {"folder": self._folder.id, **dict(zip(_NAMES, thing, strict=False)), **values}


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
