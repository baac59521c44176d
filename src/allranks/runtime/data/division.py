"""The division of a stream of samples into one contiguous part for each worker of each rank."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from allranks.runtime.data.global_batches import bounds

Intervals = tuple[tuple[int, int], ...]
"""Disjoint ranges of positions in the stream, in ascending order."""


@dataclass(frozen=True)
class Division:
    """A division of the positions that remain in an epoch.

    intervals:  the positions to divide
    batch_size: samples per step over all ranks; each rank has the same share in every step
    workers:    number of workers per rank; batch n of a rank is read by its worker n % workers, as torch's DataLoader
                does it
    drop_last:  leave out the last samples if they do not fill a batch

    Each worker reads a contiguous part of the positions, and no position belongs to two of them.
    """

    intervals: Intervals
    batch_size: int
    world_size: int
    workers: int
    drop_last: bool

    @property
    def steps(self) -> int:
        """Number of steps, the same on every rank."""
        return self._full_steps + bool(self._last_size)

    def positions(self, rank: int, step: int) -> list[int]:
        """Return the positions of a rank's batch, from step 0. A rank without a share gets one position that belongs to
        another batch."""
        worker = step % self.workers
        first = self._start(rank, worker) + self._read(rank, worker, step)
        low, high = bounds(rank, self.world_size, self.batch_size if step < self._full_steps else self._last_size)
        if low == high:
            first, high = max(0, first - 1), low + 1
        return [position for part in self._parts(first, first + high - low) for position in range(*part)]

    def remaining(self, steps: int) -> Intervals:
        """Return the positions that no rank has read after so many steps."""
        parts: list[tuple[int, int]] = []
        for rank in range(self.world_size):
            for worker in range(self.workers):
                start = self._start(rank, worker)
                read = self._read(rank, worker, steps)
                parts += self._parts(start + read, start + self._read(rank, worker, self.steps))
        if self.drop_last:
            parts += self._parts(self._full_steps * self.batch_size, self._total)
        return _merged(parts)

    @cached_property
    def _ends(self) -> list[int]:
        """Ends of the intervals, counted without the gaps between them."""
        return list(accumulate(end - start for start, end in self.intervals))

    @property
    def _total(self) -> int:
        return self._ends[-1] if self._ends else 0

    @property
    def _full_steps(self) -> int:
        return self._total // self.batch_size

    @property
    def _last_size(self) -> int:
        return 0 if self.drop_last else self._total % self.batch_size

    def _start(self, rank: int, worker: int) -> int:
        """Return the start of a worker's part, counted without the gaps."""
        low, _ = bounds(rank, self.world_size, self.batch_size)
        last_low, _ = bounds(rank, self.world_size, self._last_size)
        before = sum(self._read(rank, other, self.steps) for other in range(worker))
        return self._full_steps * low + last_low + before

    def _read(self, rank: int, worker: int, steps: int) -> int:
        """Return the number of samples that a worker reads in the first `steps` steps."""
        low, high = bounds(rank, self.world_size, self.batch_size)
        own_steps = max(0, -(-(min(steps, self._full_steps) - worker) // self.workers))
        samples = own_steps * (high - low)
        if steps > self._full_steps and self._full_steps % self.workers == worker:
            last_low, last_high = bounds(rank, self.world_size, self._last_size)
            samples += last_high - last_low
        return samples

    def _parts(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the parts of the intervals between two positions that are counted without the gaps."""
        number = bisect_right(self._ends, start)
        while start < end:
            offset = self.intervals[number][1] - self._ends[number]
            stop = min(end, self._ends[number])
            yield start + offset, stop + offset
            start, number = stop, number + 1


def _merged(parts: list[tuple[int, int]]) -> Intervals:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(parts):
        if start == end:
            continue
        if merged and merged[-1][1] == start:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((start, end))
    return tuple(merged)
