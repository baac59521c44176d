"""A data set of shards that are read from front to back, such as tar files, and its batch sampler, which resumes
within an epoch."""

from __future__ import annotations

import os
import zlib
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import Any

import torch
from torch.utils.data import Dataset

from allranks.errors import InputError, Problem
from allranks.runtime.data.sampler import GlobalBatches, bounds
from allranks.runtime.ranks.ranks import Ranks


class ShardedDataset(Dataset[Any]):
    """A data set of shards that can only be read from front to back.

    lengths:   number of samples in each shard
    read:      read(shard, start) returns an iterator over the samples of a shard, from sample `start` on. It must yield
               the same samples in the same order each time, and runs in the workers of a data loader.
    transform: is applied to each sample that is used, in the worker. Random augmentation belongs here.
    window:    number of consecutive samples of a shard that are shuffled together; as many untransformed samples are
               held in the memory of each worker

        paths = sorted(folder.glob("*.tar"))


        def read(shard, start):
            return islice(webdataset.WebDataset(str(paths[shard]), shardshuffle=False), start, None)


        dataset = runtime.ShardedDataset(lengths, read, transform=decode, window=1000)
        sampler = runtime.ShardSampler(dataset, ranks, batch_size=1024)
        loader = runtime.DataLoader(dataset, sampler, num_workers=8)

    The lengths must be known before, for example from the step that wrote the shards: the ranks divide the samples by
    them without communication. A worker that starts within a shard reads the samples before its part and discards them,
    so a data set should have at least one shard per worker of all ranks, of similar size. The
    constructor raises InputError if there is no sample. A shard with fewer or more samples than its length raises
    InputError when its end is read.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        read: Callable[[int, int], Iterator[Any]],
        *,
        transform: Callable[[Any], Any] | None = None,
        window: int = 1,
    ) -> None:
        if not sum(lengths) or min(lengths) < 0:
            found = f"{len(lengths)} shards with {sum(lengths)} samples"
            raise InputError(Problem("data set", found, "at least one sample", "check the step that prepared it"))
        if window < 1:
            raise InputError(Problem("window", str(window), "at least 1", "use 1 to read samples in their order"))
        self.lengths = tuple(lengths)
        self.window = window
        self._read, self._transform = read, transform
        self._ends = list(accumulate(lengths))
        self._open: _OpenShard | None = None

    def __len__(self) -> int:
        """Return the number of samples."""
        return self._ends[-1]

    def __getitem__(self, index: int) -> Any:
        """Return a sample, counted over all shards. Samples should be asked for in the order of a ShardSampler."""
        shard = bisect_right(self._ends, index)
        sample = self._sample(shard, index - (self._ends[shard - 1] if shard else 0))
        return sample if self._transform is None else self._transform(sample)

    def __getstate__(self) -> dict[str, Any]:
        # A shard that is open cannot be sent to a worker.
        return self.__dict__ | {"_open": None}

    def _sample(self, shard: int, number: int) -> Any:
        start = number - number % self.window
        if self._open is None or not self._open.leads_to(shard, start, number):
            if self._open is not None:
                self._open.close()
            self._open = _OpenShard(shard, start, self.lengths[shard], iter(self._read(shard, start)))
        return self._open.sample(start, number)


class _OpenShard:
    """A shard that is being read, and the samples of the current window that were read and not yet used."""

    def __init__(self, shard: int, start: int, length: int, samples: Iterator[Any]) -> None:
        self._shard, self._window, self._next, self._length = shard, start, start, length
        self._samples = samples
        self._held: dict[int, Any] = {}
        self._process = os.getpid()

    def leads_to(self, shard: int, start: int, number: int) -> bool:
        """Return whether a sample of the window at `start` can be returned without reopening the shard."""
        if shard != self._shard or os.getpid() != self._process:  # a fork shares the position in an open file
            return False
        return self._next <= start or (start == self._window and (number >= self._next or number in self._held))

    def sample(self, start: int, number: int) -> Any:
        """Read up to a sample of the window at `start`, and return it. Raise InputError for a wrong number of
        samples."""
        if start != self._window:
            self._window = start
            self._held.clear()
        while self._next <= number:
            sample = next(self._samples, _END)
            if sample is _END:
                raise self._wrong_length(str(self._next))
            if self._next >= start:
                self._held[self._next] = sample
            self._next += 1
            if self._next == self._length and next(self._samples, _END) is not _END:
                raise self._wrong_length(f"more than {self._length}")
        return self._held.pop(number)

    def close(self) -> None:
        """Close the open files of a generator."""
        close = getattr(self._samples, "close", None)
        if close is not None:
            close()

    def _wrong_length(self, found: str) -> InputError:
        found = f"{found} samples"
        fix = "count the samples of the shards again, or write the shards again"
        return InputError(Problem(f"data set, shard {self._shard}", found, f"its length, {self._length}", fix))


_END = object()


Intervals = tuple[tuple[int, int], ...]
"""Disjoint ranges of positions in the stream, in ascending order."""


class ShardSampler(GlobalBatches):
    """A batch sampler for a ShardedDataset, which gives each worker of each rank a contiguous part of the samples.

    An epoch has a fixed order of the samples: of the shards, and of the samples within each window of a shard. It
    depends on the seed and the epoch only. The ranks divide it without communication. Every rank makes the same number
    of steps, and every sample is used once in an epoch, also if the training resumes within the epoch with another
    number of ranks or workers, or another batch size: the samples that remain are then divided again. Which samples
    form a batch depends on the number of ranks and workers.

    dataset:    the shards
    batch_size: number of samples per step over all ranks
    shuffle:    use another random order in every epoch
    drop_last:  drop the last samples of an epoch if they do not fill a batch
    per_device_batch_size: largest number of samples of a rank at once, as for ResumableSampler

    GlobalBatches has its other methods and attributes. The constructor raises InputError if a batch is smaller
    than the number of ranks.
    """

    def __init__(
        self,
        dataset: ShardedDataset,
        ranks: Ranks,
        *,
        batch_size: int,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        per_device_batch_size: int | None = None,
    ) -> None:
        super().__init__(
            len(dataset),
            ranks,
            batch_size=batch_size,
            shuffle=shuffle,
            seed=seed,
            drop_last=drop_last,
            per_device_batch_size=per_device_batch_size,
        )
        self._lengths, self._window = dataset.lengths, dataset.window
        self._starts = [0, *accumulate(dataset.lengths)]
        self._division: Division | None = None  # of the samples that remained when `_divided_at` had been received
        self._divided_at = self._divided_epoch = 0
        self._order: tuple[int, ...] = ()  # of the shards, in the epoch `_order_epoch`
        self._ends: list[int] = []
        self._order_epoch = -1

    def state_dict(self) -> dict[str, Any]:
        """Return the position after the last batch that the loop received."""
        division = self._current_division()
        return super().state_dict() | {
            "window": self._window,
            "shards": zlib.crc32(repr(self._lengths).encode()),
            "intervals": [position for interval in division.intervals for position in interval],
            "divided_at": self._divided_at,
            "batch_size": division.batch_size,
            "world_size": division.world_size,
            "workers": division.workers,
            "drop_last": division.drop_last,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a position. World size, batch size, drop_last and the number of workers may differ.

        Raise InputError if the order would differ: with other shards, or another seed, shuffle or window.
        """
        self._reject_other_order(state, "shards", "window")
        super().load_state_dict(state)
        flat = state["intervals"]
        intervals = tuple(zip(flat[::2], flat[1::2], strict=True))
        shape = state["batch_size"], state["world_size"], state["workers"], state["drop_last"]
        self._division = Division(intervals, *shape)
        self._divided_at, self._divided_epoch = state["divided_at"], self._epoch

    def _remaining(self) -> Iterator[list[int]]:
        division = self._current_division()
        epoch = self._epoch
        for step in range(self._steps_of(division), division.steps):
            yield [self._sample(epoch, position) for position in division.positions(self.ranks.rank, step)]

    def _current_division(self) -> Division:
        """Return the division for this number of ranks and workers, and this batch size. It changes only at the start
        of an epoch, and if one of these numbers has changed."""
        division = self._division
        if division is None or self._divided_epoch != self._epoch:
            intervals: Intervals = ((0, self.length),)
        elif (division.batch_size, division.world_size, division.workers, division.drop_last) != self._shape:
            intervals = division.remaining(self._steps_of(division))
        else:
            return division
        self._division = Division(intervals, *self._shape)
        self._divided_at, self._divided_epoch = self._received, self._epoch
        return self._division

    @property
    def _shape(self) -> tuple[int, int, int, bool]:
        return self.batch_size, self.ranks.world_size, max(1, self.num_workers), self._drop_last

    def _steps_of(self, division: Division) -> int:
        """Return the number of steps since the division."""
        return -(-(self._received - self._divided_at) // division.batch_size)

    def _sample(self, epoch: int, position: int) -> int:
        if not self._shuffle:
            return position
        if self._order_epoch != epoch:
            self._order = _permutation(len(self._lengths), f"{self.seed} {epoch}")
            self._ends = list(accumulate(self._lengths[shard] for shard in self._order))
            self._order_epoch = epoch
        place = bisect_right(self._ends, position)
        shard = self._order[place]
        number = position - (self._ends[place - 1] if place else 0)
        window, offset = divmod(number, self._window)
        start = window * self._window
        size = min(self._window, self._lengths[shard] - start)
        if size > 1:
            offset = _permutation(size, f"{self.seed} {epoch} {shard} {window}")[offset]
        return self._starts[shard] + start + offset


@lru_cache(maxsize=64)
def _permutation(size: int, key: str) -> tuple[int, ...]:
    generator = torch.Generator().manual_seed(zlib.crc32(key.encode()))
    return tuple(torch.randperm(size, generator=generator).tolist())


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
