"""Watch a workspace for what changes in its runs, without holding a lock or an open file between two looks."""

import json
import os
import sqlite3
import time
from pathlib import Path
from typing import Any, TypeAlias

from allranks.errors import InputError
from allranks.history import locks
from allranks.history.records import Status
from allranks.history.store import Store
from allranks_studio.server.events import Event
from allranks_studio.server.folders import Folder

_SHARE = 100
"""Minimum ratio of the time between two readings of the store to the CPU time of one: 1 % of a core at most."""
_PAUSE = 2.0
"""Seconds until a store that could not be read is read again."""

_Thing: TypeAlias = tuple[str | int, ...]
"""What has a state: its kind and its names, such as ("rank", RUN, STEP, RANK)."""
_NAMES = ("kind", "run", "step", "rank")
_STATES = {"run": "status", "step": "status", "rank": "status", "log": "size"}
"""The names of the states that events have."""
_ENDED = frozenset(status for status in Status if status.ended)


class StoreWatch:
    """The states of what a folder's workspace has, each compared with the one of an earlier look. Not thread-safe."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._states: dict[_Thing, Any] = {}
        self._active: set[str] = set()
        """The runs that have not ended, as stored. An engine that has died has not changed its run."""
        self._executed: set[str] = set()
        """Those of the active runs whose engines are alive, or have not begun."""
        self._logs: dict[_Thing, str] = {}
        """The paths of logs that may grow."""
        self._statuses: dict[str, str] = {}
        self._mark: object = None
        self._next = self._next_scan = 0.0
        self._last_run = 0
        """The row of the last run that was read."""
        self._row: int | None = None
        """The last point that was read."""

    def look(self) -> list[Event]:
        """Return what has changed since the last look; nothing the first time."""
        is_first, states = not self._states, self._read_if_changed()
        states["schedule",] = _mark(self._folder.workspace.root / "schedules.db")
        self._executed -= {run for run in self._executed if self._is_dead(run)}
        states |= {("run", run): str(Status.INTERRUPTED) for run in self._active - self._executed}
        states |= {log: log_size(path) for log, path in self._logs.items()}
        changed = {thing: state for thing, state in states.items() if self._states.get(thing, 0) != state}
        self._states |= changed
        return [] if is_first else [self._event(*change) for change in changed.items()]

    def _read_if_changed(self) -> dict[_Thing, Any]:
        """Return what the store says; nothing if it has not changed, or if reading it again would take too much of a
        core."""
        mark = _mark(self._folder.workspace.database)
        if time.monotonic() < self._next or mark == self._mark:
            return {}
        begin = time.thread_time()
        try:
            states = self._read()
        except (InputError, OSError, sqlite3.Error, ValueError, KeyError, TypeError):
            self._next = time.monotonic() + _PAUSE
            return {}  # a request shows the error
        self._mark = mark  # as before the reading: later changes are read again
        self._next = time.monotonic() + _SHARE * (time.thread_time() - begin)
        return states

    def _read(self) -> dict[_Thing, Any]:
        """Return the states of all runs, those of the steps and ranks of active ones, and where points were added."""
        statuses, states, logs = dict[str, str](), dict[_Thing, Any](), dict[_Thing, str]()
        active: set[str] = set()
        if self._folder.workspace.database.exists():
            with Store(self._folder.workspace.database, reads=True) as store:
                statuses = self._read_statuses(store.connection)
                active = {run for run, status in statuses.items() if status not in _ENDED}
                for run in self._active | active:  # also those that have just ended
                    self._read_steps(store.connection, run, states, logs)
                states |= self._points(store.connection)
        states |= {("run", run): status for run, status in statuses.items()}
        states |= {thing: "removed" for thing in self._states.keys() - states.keys() if thing[0] == "run"}
        self._statuses, self._active, self._executed, self._logs = statuses, active, set(active), logs
        return states

    def _read_statuses(self, connection: sqlite3.Connection) -> dict[str, str]:
        """Return the statuses of the runs, as stored. Those of new and active ones are read each time, and all of them
        less often: of 5,000 runs they take 40 ms. So a run that is resumed or removed is noticed a little later."""
        begin, now = time.thread_time(), time.monotonic()
        is_whole = now >= self._next_scan
        after = -1 if is_whole else self._last_run
        status = "CASE WHEN json_valid(record) THEN json_extract(record, '$.status') END"
        query = f"SELECT id, {status}, rowid FROM run WHERE rowid > ? OR id IN (SELECT value FROM json_each(?))"
        rows = connection.execute(query, (after, json.dumps([*self._active]))).fetchall()
        self._last_run = max((row for _, _, row in rows), default=after)
        found = {run: status for run, status, _ in rows if status}
        if not is_whole:
            return self._statuses | found
        self._next_scan = now + _SHARE * (time.thread_time() - begin)
        return found

    def _read_steps(
        self, connection: sqlite3.Connection, run: str, states: dict[_Thing, Any], logs: dict[_Thing, str]
    ) -> None:
        """Add the states of the steps and ranks of a run, and the logs of ranks that run or have just ended."""
        for path, text in connection.execute("SELECT path, record FROM node WHERE run = ?", (run,)).fetchall():
            step = json.loads(text)
            states["step", run, path] = step["status"]
            for rank in step["ranks"]:
                name, status = (run, path, rank["rank"]), rank["status"]
                states["rank", *name] = status
                if status not in _ENDED or self._states.get(("rank", *name)) != status:
                    logs["log", *name] = rank["log"].replace("\0workspace/", f"{self._folder.workspace.root}/")

    def _points(self, connection: sqlite3.Connection) -> dict[_Thing, Any]:
        """Return the last new point of each step that has new ones."""
        (last,) = connection.execute("SELECT ifnull(max(rowid), 0) FROM point").fetchone()
        before = last if self._row is None else self._row
        self._row = last
        # "+" keeps SQLite from the index of the groups, which has all points.
        query = "SELECT run, node, max(rowid) FROM point WHERE rowid > ? GROUP BY +run, +node"
        return {("points", run, step): row for run, step, row in connection.execute(query, (before,))}

    def _is_dead(self, run: str) -> bool:
        """Return whether a run had an engine, which has died."""
        folder = self._folder.workspace.run_folder(run)
        return (folder / locks.NAME).exists() and locks.holder(folder) is None

    def _event(self, thing: _Thing, state: Any) -> Event:
        named = dict(zip(_NAMES, thing, strict=False))
        name = _STATES.get(str(thing[0]))
        return {"folder": self._folder.id, **named, **({name: state} if name else {})}


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
