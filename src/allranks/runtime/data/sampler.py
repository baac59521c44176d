"""A batch sampler whose order does not depend on the number of ranks, and which can resume within an epoch."""

import zlib
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar, overload

import torch
from torch.utils.data import Sampler

from allranks.errors import InputError, Problem
from allranks.runtime.ranks.ranks import Ranks

Batch = TypeVar("Batch")


class GlobalBatches(Sampler[list[int]], ABC):
    """Base class of ResumableSampler and ShardSampler: a batch sampler whose global batches the ranks share, and which
    counts the batches that the loop received.

    `DataLoader` and `epoch_batches` count them. The workers of a data loader draw batches in advance, so the sampler
    itself cannot.
    """

    weight: float
    """Factor for the mean loss of the last received batch, for `Training.backward`. With it, the average over the
    ranks, which DistributedDataParallel computes, is the mean over the global batch. 1.0 if the ranks' shares are
    equal, and 0.0 if this rank's batch is one repeated sample, which an evaluation must not count."""

    passes_per_batch: int
    """Number of forward and backward passes for a global batch; 1 without `per_device_batch_size`, or if there are
    enough ranks. Pass it to TrainingSettings."""

    num_workers: int
    """Number of workers that read batches in turn. `DataLoader` sets it."""

    def __init__(
        self,
        length: int,
        ranks: Ranks,
        *,
        batch_size: int,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        per_device_batch_size: int | None = None,
    ) -> None:
        if length < 1:
            raise InputError(Problem("data set", "no samples", "at least one", "check the step that prepared it"))
        if batch_size < ranks.world_size:
            found = f"{batch_size} samples in a global batch of {ranks.world_size} ranks"
            expected = f"at least {ranks.world_size}: one for each rank"
            fix = "use a larger batch_size, or fewer processes"
            raise InputError(Problem("batch_size", found, expected, fix, code="small-batch"))
        if drop_last and length < batch_size:
            found = f"{batch_size} with drop_last, but the data set has {length} samples"
            fix = f"use a batch_size of at most {length}, or drop_last=False"
            raise InputError(Problem("batch_size", found, "at least one full batch per epoch", fix))
        if per_device_batch_size is not None and per_device_batch_size < 1:
            raise InputError(Problem("per_device_batch_size", str(per_device_batch_size), "at least 1"))
        self.batch_size = batch_size
        at_once = batch_size if per_device_batch_size is None else per_device_batch_size * ranks.world_size
        self.passes_per_batch = -(-batch_size // at_once)
        self.weight = 1.0
        self.num_workers = 1
        self.ranks = ranks
        self.length = length
        self.seed = seed
        self._shuffle, self._drop_last = shuffle, drop_last
        self._epoch = 0
        self._received = 0  # samples of this epoch that the loops of all ranks have received
        self._drawn = self._exhausted = self._tracked = False

    @property
    def epoch(self) -> int:
        """The current epoch, from 0."""
        return self._epoch

    @property
    def batches_left(self) -> int:
        """Number of batches of this epoch that the loop has not received yet. After the last one it is 0, until the
        next epoch begins."""
        return self._batches(self.length - self._received)

    def __len__(self) -> int:
        """Return the number of batches per epoch, each of which may be several passes. It is the same on every rank and
        does not change within an epoch."""
        return self._batches(self.length)

    def __iter__(self) -> Iterator[list[int]]:
        """Yield this rank's share of each remaining batch of the epoch, as sample indices: `passes_per_batch` parts of
        it, one after another."""
        if self._exhausted and not self._tracked:
            raise RuntimeError(_UNTRACKED)
        self._drawn = True
        if self.passes_per_batch == 1:
            yield from self._remaining()
        else:
            for batch in self._remaining():
                for part in range(self.passes_per_batch):
                    low, high = bounds(part, self.passes_per_batch, len(batch))
                    yield batch[low:high] or batch[:1]
        self._exhausted = True

    @overload
    def epoch_batches(self) -> Iterator[list[int]]: ...

    @overload
    def epoch_batches(self, loader: Iterable[Batch]) -> Iterator[Batch]: ...

    def epoch_batches(self, loader: Iterable[Any] | None = None) -> Iterator[Any]:
        """Yield the remaining batches of the epoch, and count them.

        loader: torch's own DataLoader over this sampler. Without it, the batches are lists of sample indices, for data
                that is in memory. For other data, `runtime.DataLoader` counts its batches itself.

        After the last batch, the next epoch begins. If the loop ends early, the next call continues after its last
        batch.
        """
        self._tracked = True
        iterator = self._iterate(self if loader is None else loader)
        rank, world_size, passes = self.ranks.rank, self.ranks.world_size, self.passes_per_batch
        for number, batch in enumerate(iterator):
            part = number % passes
            size = min(self.batch_size, self.length - self._received)
            low, high = bounds(rank, world_size, size)
            if passes > 1:
                low, high = bounds(part, passes, high - low)
            self.weight = (high - low) * world_size * passes / size
            if part == passes - 1:
                self._received += size
            yield batch
        self._epoch += 1
        self._received = 0

    def state_dict(self) -> dict[str, Any]:
        """Return the position after the last batch of which the loop received all parts."""
        if self._drawn and not self._tracked:
            raise RuntimeError(_UNTRACKED)
        return {
            "epoch": self._epoch,
            "received": self._received,
            "length": self.length,
            "seed": self.seed,
            "shuffle": int(self._shuffle),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a position. World size, batch size and the number of workers may differ.

        Raise InputError if the order would differ, for example with another length, seed or shuffle.
        """
        self._reject_other_order(state, "length", "seed", "shuffle")
        self._epoch, self._received = state["epoch"], state["received"]

    @abstractmethod
    def _remaining(self) -> Iterator[list[int]]:
        """Yield this rank's share of each remaining batch of the epoch."""

    def _batches(self, samples: int) -> int:
        return samples // self.batch_size if self._drop_last else -(-samples // self.batch_size)

    def _reject_other_order(self, state: dict[str, Any], *names: str) -> None:
        own_state = self.state_dict()
        for name in names:
            if state[name] != own_state[name]:
                found = f"{state[name]}, but this training uses {own_state[name]}"
                expected = "the same value, because the order of the samples depends on it"
                fix = f"train with {name} {state[name]}, or without the checkpoint"
                raise InputError(Problem(f"checkpoint, sampler's {name}", found, expected, fix))

    def _iterate(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        # torch's DataLoader draws a random number at the start of an epoch. A resumed epoch has already drawn it.
        if self._received == 0:
            return iter(batches)
        state = torch.get_rng_state()
        iterator = iter(batches)
        torch.set_rng_state(state)
        return iterator


def bounds(rank: int, world_size: int, size: int) -> tuple[int, int]:
    """Return the bounds of a rank's share of a global batch of `size` samples."""
    return rank * size // world_size, (rank + 1) * size // world_size


_UNTRACKED = (
    "the batches of this sampler were not counted, so its position is unknown: use `for batch in loader` with "
    "runtime.DataLoader, or `for batch in sampler.epoch_batches(loader)` with torch's"
)


class ResumableSampler(GlobalBatches):
    """A batch sampler that yields this rank's share of every global batch, as indices into a data set.

    Together, N ranks process the same samples in each step as one process with the same batch size. The order depends
    on the seed and the epoch only. Every rank makes the same number of steps, also if the shares differ in size. A rank
    without a share of a small last batch gets one repeated sample with weight 0.

        loader = runtime.DataLoader(dataset, sampler, num_workers=4)
        for epoch in range(sampler.epoch, epochs):
            for images, labels in loader:
                training.backward(cross_entropy(training.model(images), labels), sampler.weight)

    length:     number of samples in the data set
    batch_size: number of samples per step over all ranks
    shuffle:    use another random order in every epoch
    drop_last:  drop the last samples of an epoch if they do not fill a batch
    per_device_batch_size: largest number of samples of a rank at once; ranks that are too few for a batch receive their
                shares of it in several parts, `passes_per_batch`, for gradient accumulation; None: no limit

    GlobalBatches has its methods and attributes. The constructor raises InputError if there is no sample, or a batch
    is smaller than the number of ranks.
    """

    def _remaining(self) -> Iterator[list[int]]:
        order = self._order()
        rank, world_size = self.ranks.rank, self.ranks.world_size
        end = min(self._received + self.batches_left * self.batch_size, self.length)
        for start in range(self._received, end, self.batch_size):
            low, high = bounds(rank, world_size, min(self.batch_size, end - start))
            yield order[start + low : start + high] or order[start : start + 1]

    def _order(self) -> list[int]:
        if not self._shuffle:
            return list(range(self.length))
        # torch's CPU generator uses 32 bits of a seed, so seed and epoch are hashed to 32 bits.
        seed = zlib.crc32(f"{self.seed} {self.epoch}".encode())
        order: list[int] = torch.randperm(self.length, generator=torch.Generator().manual_seed(seed)).tolist()
        return order
