"""Resource usage of the ranks of a step over time: CPU time, memory and GPUs."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

MOST = 512
"""Number of samples of an instance from which on each pair of neighbours is merged."""
_RECENT = 32
"""Samples among which the last two of a rank are: an instance with many ranks has several samples of one moment."""


@dataclass(frozen=True)
class RankUsage:
    """The resource usage of a rank, with all its processes.

    cpu:        seconds of CPU time since it started, including processes that have ended
    memory:     bytes of private and shared memory that no file backs. Pages that forked processes share count once;
                other shared memory counts in each process that maps it
    gpu:        percent of the time in which its GPUs were busy; None without GPUs
    gpu_memory: bytes of memory on its GPUs
    """

    cpu: float
    memory: int
    gpu: float | None = None
    gpu_memory: int | None = None


@dataclass(frozen=True)
class Sample:
    """Resource usage of the ranks of one instance at one moment, in seconds since the epoch."""

    time: float
    ranks: Mapping[int, RankUsage] = field(default_factory=dict)


def thin(samples: Sequence[Sample]) -> list[Sample]:
    """Return half as many samples: each pair of neighbours merged."""
    pairs = [samples[index : index + 2] for index in range(0, len(samples), 2)]
    return [_merge(pair[0], pair[1]) if len(pair) == 2 else pair[0] for pair in pairs]


def latest(samples: Sequence[Sample], rank: int, started: float | None) -> tuple[float | None, RankUsage] | None:
    """Return the cores that a rank used between its last two samples, and its last usage; None if it has no sample.

    The cost does not depend on the number of samples, because a terminal shows this several times per second.
    """
    last: list[tuple[float, RankUsage]] = []
    for sample in reversed(samples[-_RECENT:]):
        if rank in sample.ranks:
            last.insert(0, (sample.time, sample.ranks[rank]))
        if len(last) == 2:
            break
    if not last:
        return None
    end, used = last[-1]
    start, before = (last[0][0], last[0][1].cpu) if len(last) == 2 else (started, 0.0)
    return (None if start is None or end <= start else (used.cpu - before) / (end - start)), used


def _merge(first: Sample, second: Sample) -> Sample:
    """Return a sample with the later time and CPU time, the larger memory, and the mean use of GPUs."""
    both = {rank: _merge_ranks(first.ranks[rank], second.ranks[rank]) for rank in first.ranks.keys() & second.ranks}
    return Sample(second.time, {**first.ranks, **second.ranks, **both})


def _merge_ranks(first: RankUsage, second: RankUsage) -> RankUsage:
    gpu = [use for use in (first.gpu, second.gpu) if use is not None]
    gpu_memory = [used for used in (first.gpu_memory, second.gpu_memory) if used is not None]
    return RankUsage(
        second.cpu,
        max(first.memory, second.memory),
        sum(gpu) / len(gpu) if gpu else None,
        max(gpu_memory, default=None),
    )


def add(connection: sqlite3.Connection, run: str, node: str, instance: int, samples: Iterable[Sample]) -> None:
    rows = [(run, node, instance, sample.time, _dump(sample)) for sample in samples]
    connection.executemany("INSERT INTO usage VALUES (?, ?, ?, ?, ?)", rows)


def replace(connection: sqlite3.Connection, run: str, node: str, instance: int, samples: Iterable[Sample]) -> None:
    with connection:
        connection.execute("BEGIN")
        connection.execute("DELETE FROM usage WHERE run = ? AND node = ? AND instance = ?", (run, node, instance))
        add(connection, run, node, instance, samples)


def clear(connection: sqlite3.Connection, run: str, node: str) -> None:
    connection.execute("DELETE FROM usage WHERE run = ? AND node = ?", (run, node))


def samples_of(connection: sqlite3.Connection, run: str) -> dict[str, dict[int, list[Sample]]]:
    """Return the samples of a run by step and instance. Raise DatabaseError if one cannot be read."""
    samples: dict[str, dict[int, list[Sample]]] = {}
    rows = connection.execute("SELECT node, instance, time, ranks FROM usage WHERE run = ? ORDER BY rowid", (run,))
    for node, instance, time, ranks in rows:
        samples.setdefault(node, {}).setdefault(instance, []).append(Sample(time, _load(ranks)))
    return samples


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
