"""A batch sampler whose order does not depend on the number of ranks, and which can resume within an epoch."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar, overload

import torch
from torch.utils.data import Sampler

from allranks.errors import InputError, Problem
from allranks.runtime.ranks import Ranks

Batch = TypeVar("Batch")


class ResumableSampler(Sampler[list[int]]):
    """A batch sampler for torch's DataLoader that yields this rank's share of every global batch.

    Together, N ranks process the same samples in each step as one process with the same batch size. The order depends
    on the seed and the epoch only. Every rank makes the same number of steps, also if the shares differ in size. A rank
    without a share of a small last batch gets one repeated sample with weight 0.

    Iterate with `epoch_batches`, which counts the batches that the loop has received. The workers of a DataLoader draw
    batches in advance, so the sampler itself cannot count them:

        for epoch in range(sampler.epoch, epochs):
            for images, labels in sampler.epoch_batches(loader):
                loss = cross_entropy(model(images), labels) * sampler.weight

    length:     number of samples in the data set
    batch_size: number of samples per step over all ranks
    drop_last:  drop the last samples of an epoch if they do not fill a batch

    The constructor raises InputError if there is no sample, or a batch has fewer samples than there are ranks.
    """

    weight: float
    """Factor for the mean loss of the last received batch. With it, the average over the ranks, which
    DistributedDataParallel computes, is the mean over the global batch. 1.0 if the ranks' shares are equal."""

    def __init__(
        self,
        length: int,
        ranks: Ranks,
        *,
        batch_size: int,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
    ) -> None:
        if length < 1:
            raise InputError(Problem("data set", "no samples", "at least one", "look at the step that prepared it"))
        if batch_size < ranks.world_size:
            raise InputError(
                Problem(
                    where="batch_size",
                    found=f"{batch_size} samples in a global batch of {ranks.world_size} ranks",
                    expected=f"at least {ranks.world_size}: one for each rank",
                    fix="use a larger batch_size, or fewer processes",
                    code="small-batch",
                )
            )
        if drop_last and length < batch_size:
            raise InputError(
                Problem(
                    where="batch_size",
                    found=f"{batch_size} with drop_last, but the data set has {length} samples",
                    expected="at least one full batch per epoch",
                    fix=f"use a batch_size of at most {length}, or drop_last=False",
                )
            )
        self.batch_size = batch_size
        self.weight = 1.0
        self._length = length
        self._rank, self._world_size = ranks.rank, ranks.world_size
        self._shuffle, self._seed, self._drop_last = shuffle, seed, drop_last
        self._epoch = 0
        self._received = 0  # samples of this epoch that the loops of all ranks have received
        self._drawn = self._exhausted = self._tracked = False

    @property
    def epoch(self) -> int:
        """The current epoch, from 0."""
        return self._epoch

    def __len__(self) -> int:
        """Return the number of batches per epoch. It is the same on every rank and does not change within an epoch."""
        return self._length // self.batch_size if self._drop_last else -(-self._length // self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        """Yield this rank's share of each remaining batch of the epoch, as sample indices."""
        if self._exhausted and not self._tracked:
            raise RuntimeError(_UNTRACKED)
        order = self._order()
        for start in range(self._received, self._end(), self.batch_size):
            self._drawn = True
            yield self._share(order[start : start + self.batch_size])
        self._exhausted = True

    @overload
    def epoch_batches(self) -> Iterator[list[int]]: ...

    @overload
    def epoch_batches(self, loader: Iterable[Batch]) -> Iterator[Batch]: ...

    def epoch_batches(self, loader: Iterable[Any] | None = None) -> Iterator[Any]:
        """Yield the remaining batches of the epoch, and count them.

        loader: a DataLoader over this sampler. Without it, the batches are lists of sample indices.

        After the last batch, the next epoch begins. If the loop ends early, the next call continues after its last
        batch.
        """
        self._tracked = True
        iterator = self._iterate(self if loader is None else loader)
        for batch in iterator:
            size = min(self.batch_size, self._length - self._received)
            self._received += size
            low, high = self._bounds(size)
            self.weight = (high - low) * self._world_size / size
            yield batch
        self._epoch += 1
        self._received = 0

    def state_dict(self) -> dict[str, int]:
        """Return the position after the last batch that the loop received."""
        if self._drawn and not self._tracked:
            raise RuntimeError(_UNTRACKED)
        return {
            "epoch": self._epoch,
            "received": self._received,
            "length": self._length,
            "seed": self._seed,
            "shuffle": int(self._shuffle),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a position. World size and batch size may differ.

        Raise InputError if the order would differ, that is, with another length, seed or shuffle.
        """
        own_state = self.state_dict()
        for name in ("length", "seed", "shuffle"):
            if state[name] != own_state[name]:
                raise InputError(
                    Problem(
                        where=f"checkpoint, sampler's {name}",
                        found=f"{state[name]}, but this training uses {own_state[name]}",
                        expected="the same value, because the order of the samples depends on it",
                        fix=f"train with {name} {state[name]}, or without the checkpoint",
                    )
                )
        self._epoch, self._received = state["epoch"], state["received"]

    def _iterate(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        # A DataLoader draws a random number at the start of an epoch. A resumed epoch has already drawn it.
        if self._received == 0:
            return iter(batches)
        state = torch.get_rng_state()
        iterator = iter(batches)
        torch.set_rng_state(state)
        return iterator

    def _order(self) -> list[int]:
        if not self._shuffle:
            return list(range(self._length))
        # torch's CPU generator uses 32 bits of a seed, so seed and epoch are hashed to 32 bits.
        seed = zlib.crc32(f"{self._seed} {self._epoch}".encode())
        order: list[int] = torch.randperm(self._length, generator=torch.Generator().manual_seed(seed)).tolist()
        return order

    def _end(self) -> int:
        if not self._drop_last:
            return self._length
        remaining = self._length - self._received
        return self._received + remaining // self.batch_size * self.batch_size

    def _share(self, batch: list[int]) -> list[int]:
        low, high = self._bounds(len(batch))
        return batch[low:high] or batch[:1]

    def _bounds(self, size: int) -> tuple[int, int]:
        return self._rank * size // self._world_size, (self._rank + 1) * size // self._world_size


_UNTRACKED = (
    "the batches of this ResumableSampler were not counted, so its position is unknown: "
    "use `for batch in sampler.epoch_batches(loader)` instead of `for batch in loader`"
)
