"""The store of a workspace: runs, their plans and steps, curves, and reusable results, in one SQLite file.

Every change is one transaction, so that a run whose engine was killed can be read and resumed. Readers work while an
engine writes.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import sqlite3
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from allranks.history import selection, usage
from allranks.history.database import Database, transaction
from allranks.history.records import Point, RankRecord, RunRecord, Status, StepRecord

if TYPE_CHECKING:
    from cattrs.preconf.json import JsonConverter

_Record = TypeVar("_Record")

_HERE = r"\u0000workspace/"
"""Replaces the workspace's folder at the beginning of a path in a JSON text. No path has this character."""

_NEIGHBOURS = 64
"""Rows that are read together, when only a part of them is read."""


class Store(Database):
    """An open store."""

    kind = "store"
    tables = Path(__file__).with_name("store.sql").read_text(encoding="utf-8")
    version = 4

    def __init__(self, path: Path, *, reads: bool = False) -> None:
        super().__init__(path, reads=reads)
        self._root = json.dumps(os.path.realpath(path.parent))[1:-1] + "/"

    def add_run(self, run: RunRecord, plan: str) -> None:
        """Save a new run with all its steps. plan: its graph as JSON"""
        with transaction(self.connection):
            self.connection.execute(
                "INSERT INTO run VALUES (?, ?, ?, ?)", (run.id, run.created, self._dump_run(run), self._relative(plan))
            )
            self._add_steps(run)

    def put_run(self, run: RunRecord, plan: str | None = None) -> None:
        """Replace an existing run and its steps, which may differ from the earlier ones. With a new plan, also replace
        the plan, and remove the run's decisions."""
        with transaction(self.connection):
            self.save_run(run)
            if plan is not None:
                self.connection.execute("UPDATE run SET plan = ? WHERE id = ?", (self._relative(plan), run.id))
            for table in ("node",) if plan is None else ("node", "decision", "cancellation"):
                self.connection.execute(f"DELETE FROM {table} WHERE run = ?", (run.id,))
            self._add_steps(run)

    def save_run(self, run: RunRecord) -> None:
        """Save the run's own state, without its steps."""
        self.connection.execute("UPDATE run SET record = ? WHERE id = ?", (self._dump_run(run), run.id))

    def save_step(self, run: RunRecord, step: StepRecord) -> None:
        """Save a step's state without its curves."""
        self.connection.execute(
            "UPDATE node SET record = ? WHERE run = ? AND path = ?", (self._dump_step(step), run.id, step.name)
        )

    def save_steps(self, run: RunRecord, steps: Iterable[tuple[StepRecord, str | None]]) -> None:
        """Save the states of steps without their curves, in one transaction.

        steps: each with the key of its result, or None
        """
        with transaction(self.connection):
            for step, result in steps:
                self.save_step(run, step)
                if result is not None:
                    self.add_result(result, run.id, step.name)

    def add_step(self, run: RunRecord, step: StepRecord) -> None:
        """Add a node that was created during the run."""
        self.connection.execute(
            "INSERT OR REPLACE INTO node VALUES (?, ?, ?, ?)",
            (run.id, len(run.steps), step.name, self._dump_step(step)),
        )

    def add_decision(self, run: str, path: str, key: str, value: str) -> None:
        self.connection.execute("INSERT OR REPLACE INTO decision VALUES (?, ?, ?, ?)", (run, path, key, value))

    def decisions(self, run: str) -> dict[tuple[str, str], str]:
        """Return every decision of a run: (path, key) -> value."""
        rows = self.connection.execute("SELECT path, key, value FROM decision WHERE run = ?", (run,))
        return {(path, key): value for path, key, value in rows}

    def add_cancellation(self, run: str, path: str) -> None:
        """Save a user's request to cancel a node of a run and everything inside it."""
        self.connection.execute("INSERT OR REPLACE INTO cancellation VALUES (?, ?)", (run, path))

    def cancellations(self, run: str) -> list[str]:
        """Return and remove the paths of the nodes that a user has requested to cancel."""
        rows = self.connection.execute("DELETE FROM cancellation WHERE run = ? RETURNING path", (run,)).fetchall()
        return [path for (path,) in rows]

    def has_cancellations(self, run: str) -> bool:
        """Return whether there are requests that the engine of a run has not read yet."""
        return self.connection.execute("SELECT 1 FROM cancellation WHERE run = ?", (run,)).fetchone() is not None

    def add_points(self, run: str, step: str, points: Iterable[tuple[str, Point]]) -> None:
        """Add points to the curves of a step: pairs of a metric's name and a point."""
        with transaction(self.connection):
            self.connection.executemany(
                "INSERT INTO point VALUES (?, ?, ?, ?, ?, ?)",
                # SQLite has no NaN and would silently store NULL, which `curves` reads as NaN.
                [(run, step, metric, point.step, point.value, point.time) for metric, point in points],
            )

    def clear_points(self, run: str, step: str) -> None:
        """Remove the curves of a step."""
        self.connection.execute("DELETE FROM point WHERE run = ? AND node = ?", (run, step))

    def add_result(self, key: str, run: str, step: str) -> None:
        """Record this step as the producer of the result with this key."""
        self.connection.execute("INSERT OR REPLACE INTO result VALUES (?, ?, ?)", (key, run, step))

    def remove_results(self, run: str, step: str) -> None:
        self.connection.execute("DELETE FROM result WHERE run = ? AND node = ?", (run, step))

    def result(self, key: str) -> tuple[str, StepRecord] | None:
        """Return the run and the step that produced the result with this key; None if there is none."""
        row = self.connection.execute(
            "SELECT node.run, node.record FROM result"
            " JOIN node ON node.run = result.run AND node.path = result.node WHERE key = ?",
            (key,),
        ).fetchone()
        return (row[0], self._loaded(row[1], StepRecord)) if row else None

    def plan(self, run: str) -> str:
        """Return the plan of a run as JSON. Raise InputError if there is no such run."""
        row = self.connection.execute("SELECT plan FROM run WHERE id = ?", (self.find(run),)).fetchone()
        return self._absolute(row[0])

    def run(self, run: str, *, curves: bool = True) -> RunRecord:
        """Return a run with its steps and, by default, their curves. run: any name that `selection.find` accepts

        Raise InputError if there is no such run.
        """
        identity = self.find(run)
        (text,) = self.connection.execute("SELECT record FROM run WHERE id = ?", (identity,)).fetchone()
        record = self._loaded(text, RunRecord)
        record.steps = self._steps(identity)
        rows = self.connection.execute("SELECT DISTINCT node FROM point WHERE run = ?", (identity,)) if curves else ()
        measured = {node for (node,) in rows}
        for step in record.steps:
            if step.name in measured:
                step.metrics = self.curves(identity, step.name)
        return record

    def curves(self, run: str, step: str) -> dict[str, list[Point]]:
        """Return the curves of a step by metric, with their points in the order of addition."""
        curves = self.part_of_curves(run, step, sys.maxsize)
        return {metric: [Point(*point) for point in points] for metric, points in curves.items()}

    def measured_steps(self, run: str) -> list[str]:
        """Return the paths of the steps that have curves."""
        query = "SELECT path FROM node WHERE run = ?1 AND EXISTS (SELECT 1 FROM point WHERE run = ?1 AND node = path)"
        return [path for (path,) in self.connection.execute(f"{query} ORDER BY position", (run,))]

    def part_of_curves(self, run: str, step: str, most: int) -> dict[str, list[tuple[int, float, float]]]:
        """Return the points of a step as (x, value, time) by metric, in the order of addition.

        most: about how many. Of more, an even part is read, so that the time does not depend on their number
        """
        curves: dict[str, list[tuple[int, float, float]]] = {}
        for metric, x, value, time in self._part_of_points(run, step, most):
            curves.setdefault(metric, []).append((x, math.nan if value is None else value, time))
        return curves

    def _part_of_points(self, run: str, step: str, most: int) -> list[tuple[str, int, float | None, float]]:
        columns, where = "SELECT metric, x, value, time FROM point", "WHERE run = ? AND node = ?"
        ends = ", ".join(f"(SELECT {end}(rowid) FROM point {where})" for end in ("min", "max"))
        rows = self.connection.execute(f"SELECT {ends}", 2 * (run, step)).fetchone()
        if None in rows or rows[1] - rows[0] < most:
            return self.connection.execute(f"{columns} {where} ORDER BY rowid", (run, step)).fetchall()
        # The points of one moment are neighbours, so neighbours have all metrics. "+" keeps SQLite from the index.
        found, count = [], max(most // _NEIGHBOURS, 1)
        query = f"{columns} WHERE rowid >= ? AND rowid < ? AND +run = ? AND +node = ?"
        for block in range(count):
            first = rows[0] + block * (rows[1] + 1 - rows[0] - _NEIGHBOURS) // max(count - 1, 1)
            found += self.connection.execute(query, (first, first + _NEIGHBOURS, run, step)).fetchall()
        if len(found) > most // 4:
            return found
        # Many other runs added points at the same time.
        (total,) = self.connection.execute(f"SELECT count(*) FROM point {where}", (run, step)).fetchone()
        query = f"{columns} {where} AND (rowid * 40503 >> 6) % ? = 0 ORDER BY rowid"
        return self.connection.execute(query, (run, step, total // most + 1)).fetchall()

    def last_values(self, run: str) -> dict[str, dict[str, float | None]]:
        """Return the last value of each metric, None for NaN, by step and metric."""
        query = "SELECT node, metric, value, max(rowid) FROM point WHERE run = ? GROUP BY node, metric"
        found: dict[str, dict[str, float | None]] = {}
        for step, metric, value, _ in self.connection.execute(query, (run,)):
            found.setdefault(step, {})[metric] = value
        return found

    def load_usage(self, run: RunRecord) -> None:
        """Load the samples of resource usage into a run's record. Raise DatabaseError if one cannot be read."""
        samples = usage.samples_of(self.connection, run.id)
        for step in run.steps:
            step.usage = samples.get(step.name, {})

    def each_run(
        self, *, since: float = 0.0, steps: bool = True, unreadable: Callable[[str, str], object] | None = None
    ) -> Iterator[RunRecord]:
        """Yield the runs, the last created first, with their steps but without curves. Each is read when it is
        requested.

        since:      when the first one was created, in seconds since the epoch
        steps:      whether to read the steps too, which may be thousands per run
        unreadable: is called with the id of a damaged run and the reason. Without it, raise DatabaseError
        """
        order = "SELECT rowid FROM run WHERE created >= ? ORDER BY rowid DESC"
        for (row,) in self.connection.execute(order, (since,)).fetchall():
            found = self.connection.execute("SELECT id, record FROM run WHERE rowid = ?", (row,)).fetchone()
            if found is None:
                continue  # another process has removed it
            try:
                record = self._loaded(found[1], RunRecord)
                record.steps = self._steps(found[0]) if steps else []
            except sqlite3.DatabaseError as error:
                if unreadable is None:
                    raise
                unreadable(found[0], str(error))
            else:
                yield record

    def has(self, run: str) -> bool:
        return self.connection.execute("SELECT 1 FROM run WHERE id = ?", (run,)).fetchone() is not None

    def _steps(self, run: str) -> list[StepRecord]:
        rows = self.connection.execute("SELECT record FROM node WHERE run = ? ORDER BY position", (run,))
        return [self._loaded(row[0], StepRecord) for row in rows]

    def find(self, run: str) -> str:
        """Return the id of a run by any name that `selection.find` accepts."""
        return selection.find(self.connection, run, self.path.parent)

    def remove_run(self, run: str) -> bool:
        """Remove a run and all its data, unless another run reuses its results. Return whether it was removed."""
        with transaction(self.connection):
            used = self.connection.execute(
                "SELECT 1 FROM node WHERE json_extract(record, '$.reused_from') = ? AND run != ?", (run, run)
            ).fetchone()
            if used:
                return False
            for table in ("node", "decision", "point", "usage", "result", "cancellation"):
                self.connection.execute(f"DELETE FROM {table} WHERE run = ?", (run,))
            self.connection.execute("DELETE FROM run WHERE id = ?", (run,))
        return True

    def registered_paths(self) -> list[str]:
        """Return the paths of all registered assets."""
        return [os.path.join(self.path.parent, path) for (path,) in self.connection.execute("SELECT path FROM asset")]

    def vacuum(self) -> None:
        """Return the space of removed rows to the disk, unless an engine is writing."""
        with contextlib.suppress(sqlite3.OperationalError):
            self.connection.execute("VACUUM")
            self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def interrupt(self, is_executed: Callable[[str], bool]) -> None:
        """Mark the runs whose engine died. is_executed: returns whether an engine executes the run with an id"""
        ended = [str(status) for status in Status if status.ended]
        marks = ", ".join("?" * len(ended))
        rows = self.connection.execute(
            f"SELECT id FROM run WHERE json_extract(record, '$.status') NOT IN ({marks})"
            " AND json_extract(record, '$.submitted') IS NULL",
            ended,
        ).fetchall()
        for (identity,) in rows:
            if is_executed(identity):
                continue
            run = self.run(identity)
            if run.status.ended:
                continue  # since the query
            mark_interrupted(run)
            self.save_run(run)
            for step in run.steps:
                self.save_step(run, step)

    def _add_steps(self, run: RunRecord) -> None:
        self.connection.executemany(
            "INSERT INTO node VALUES (?, ?, ?, ?)",
            [(run.id, position, step.name, self._dump_step(step)) for position, step in enumerate(run.steps)],
        )

    def _loaded(self, text: str, kind: type[_Record]) -> _Record:
        """Parse a record. Raise DatabaseError if the text is damaged."""
        try:
            return _converter().loads(self._absolute(text), kind)
        except Exception as error:  # the errors of JSON and of cattrs have no common class
            raise sqlite3.DatabaseError(f"a record cannot be read ({type(error).__name__}: {error})") from None

    def _dump_run(self, run: RunRecord) -> str:
        return self._relative(json.dumps(replace(run, steps=[]), default=vars))

    def _dump_step(self, step: StepRecord) -> str:
        return self._relative(json.dumps(replace(step, metrics={}, usage={}), default=vars))

    def _relative(self, text: str) -> str:
        """Replace the workspace's folder in the paths of a JSON text, so that the folder may be moved."""
        return re.sub(rf"(?<![\w.-]){re.escape(self._root)}", lambda _: _HERE, text)

    def _absolute(self, text: str) -> str:
        return text.replace(_HERE, self._root)


def mark_interrupted(run: RunRecord) -> None:
    """Mark a run that has not ended as Interrupted, with its running steps and ranks, because its engine has died."""
    run.status = Status.INTERRUPTED
    items: list[StepRecord | RankRecord] = [*run.steps, *(rank for step in run.steps for rank in step.ranks)]
    for item in items:
        if item.status in (Status.RUNNING, Status.PREPARING):
            item.status = Status.INTERRUPTED


@cache
def _converter() -> JsonConverter:
    from cattrs.preconf.json import make_converter  # takes 0.05 s to import, and a new run reads no record

    return make_converter()
