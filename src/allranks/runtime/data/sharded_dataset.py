"""A data set of shards that are read from front to back, such as tar files."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any

from torch.utils.data import Dataset

from allranks.errors import InputError, Problem


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
        """Return whether a sample of the window at `start` can be returned without reading the shard again."""
        if shard != self._shard or os.getpid() != self._process:  # a fork shares the position in an open file
            return False
        return self._next <= start or (start == self._window and (number >= self._next or number in self._held))

    def sample(self, start: int, number: int) -> Any:
        """Return a sample of the window at `start`. Read up to it. Raise InputError at an end in the wrong place."""
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
        """Close the files that a generator has open."""
        close = getattr(self._samples, "close", None)
        if close is not None:
            close()

    def _wrong_length(self, found: str) -> InputError:
        found = f"{found} samples"
        fix = "count the samples of the shards again, or write the shards again"
        return InputError(Problem(f"data set, shard {self._shard}", found, f"{self._length}, as its length says", fix))


_END = object()
