"""Store samples of resource usage. They are read only when someone asks for them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable

from allranks.runs.records import StepRecord
from allranks.runs.usage import RankUsage, Sample

TABLE = """
CREATE TABLE usage (
    run TEXT NOT NULL, node TEXT NOT NULL, instance INTEGER NOT NULL, time REAL NOT NULL, ranks TEXT NOT NULL,
    received INTEGER, sent INTEGER) STRICT;
CREATE INDEX usage_of_node ON usage (run, node);
"""
"""ranks: a JSON list of [rank, CPU seconds, bytes of memory], with GPUs also percent of use and bytes on them"""


def add(connection: sqlite3.Connection, run: str, node: str, instance: int, samples: Iterable[Sample]) -> None:
    """Add samples of an instance of a step."""
    rows = [(run, node, instance, sample.time, _dump(sample), sample.received, sample.sent) for sample in samples]
    connection.executemany("INSERT INTO usage VALUES (?, ?, ?, ?, ?, ?, ?)", rows)


def replace(connection: sqlite3.Connection, run: str, node: str, instance: int, samples: Iterable[Sample]) -> None:
    """Replace all samples of an instance of a step."""
    with connection:
        connection.execute("BEGIN")
        connection.execute("DELETE FROM usage WHERE run = ? AND node = ? AND instance = ?", (run, node, instance))
        add(connection, run, node, instance, samples)


def clear(connection: sqlite3.Connection, run: str, node: str) -> None:
    """Remove the samples of a step."""
    connection.execute("DELETE FROM usage WHERE run = ? AND node = ?", (run, node))


def load(connection: sqlite3.Connection, run: str, steps: Iterable[StepRecord]) -> None:
    """Load the samples of a run's steps into their records. Raise DatabaseError if one cannot be read."""
    by_name = {step.name: step for step in steps}
    for step in by_name.values():
        step.usage = {}
    rows = connection.execute(
        "SELECT node, instance, time, ranks, received, sent FROM usage WHERE run = ? ORDER BY rowid", (run,)
    )
    for node, instance, time, ranks, received, sent in rows:
        if node in by_name:
            sample = Sample(time, _load(ranks), received, sent)
            by_name[node].usage.setdefault(instance, []).append(sample)


def _dump(sample: Sample) -> str:
    ranks = []
    for rank, used in sample.ranks.items():
        gpus = [] if used.gpu is None and used.gpu_memory is None else [used.gpu, used.gpu_memory]
        ranks.append([rank, used.cpu, used.memory, *gpus])
    return json.dumps(ranks, separators=(",", ":"))


def _load(text: str) -> dict[int, RankUsage]:
    try:
        return {rank: RankUsage(*values) for rank, *values in json.loads(text)}
    except (ValueError, TypeError) as error:
        raise sqlite3.DatabaseError(f"a sample cannot be read ({type(error).__name__}: {error})") from None
