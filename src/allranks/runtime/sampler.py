"""The order in which samples are seen: the same on any number of ranks, and resumed where it stopped."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import torch
from torch.utils.data import Sampler

from allranks.errors import InputError, Problem
from allranks.runtime.ranks import Ranks

Batch = TypeVar("Batch")


class ResumableSampler(Sampler[list[int]]):
    """A batch sampler for torch's DataLoader that gives each rank its share of every global batch.

    N ranks see together, step by step, the samples that one process sees with the same batch size: the order follows
    from the seed and the epoch alone. Every rank makes the same number of steps, also where shares are unequal; a
    rank that would get nothing of a small last batch gets one sample again, whose weight is 0.

    The loop goes through `track`, which knows what was received where workers of a DataLoader have drawn ahead:

        for epoch in range(sampler.epoch, epochs):
            for images, labels in sampler.track(loader):
                loss = cross_entropy(model(images), labels) * sampler.weight

    length:     samples of the data set
    batch_size: samples of a step, of all ranks together
    drop_last:  leave out an epoch's last samples where they do not fill a batch

    Raises InputError where there is no sample, or a batch has none for some rank.
    """

    weight: float
    """What the mean loss of the batch received last is multiplied by, so that the average over the ranks, which
    DistributedDataParallel takes, is the mean over the global batch. 1.0 where the ranks' shares are equal."""

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
                    fix="give a larger batch_size, or fewer processes",
                )
            )
        if drop_last and length < batch_size:
            raise InputError(
                Problem(
                    where="batch_size",
                    found=f"{batch_size} with drop_last, but the data set has {length} samples",
                    expected="at least one whole batch an epoch",
                    fix=f"give a batch_size of at most {length}, or drop_last=False",
                )
            )
        self.batch_size = batch_size
        self.weight = 1.0
        self._length = length
        self._rank, self._world_size = ranks.rank, ranks.world_size
        self._shuffle, self._seed, self._drop_last = shuffle, seed, drop_last
        self._epoch = 0
        self._received = 0  # samples of this epoch that the loop has been given, over all ranks
        self._drawn = self._exhausted = self._tracked = False

    @property
    def epoch(self) -> int:
        """The epoch that it stands in, from 0."""
        return self._epoch

    def __len__(self) -> int:
        """Batches of a whole epoch, the same on every rank and wherever in the epoch it stands."""
        return self._length // self.batch_size if self._drop_last else -(-self._length // self.batch_size)

    def __iter__(self) -> Iterator[list[int]]:
        """This rank's share of each batch that is left in the epoch, as indices of samples."""
        if self._exhausted and not self._tracked:
            raise RuntimeError(_UNTRACKED)
        order = self._order()
        for start in range(self._received, self._end(), self.batch_size):
            self._drawn = True
            yield self._share(order[start : start + self.batch_size])
        self._exhausted = True

    def track(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        """Go through a DataLoader over this sampler (or the sampler itself) and count what the loop is given.

        After the last batch the next epoch begins. A loop that is left early stays where it is.
        """
        self._tracked = True
        iterator = self._iterate(batches)
        for batch in iterator:
            size = min(self.batch_size, self._length - self._received)
            self._received += size
            low, high = self._bounds(size)
            self.weight = (high - low) * self._world_size / size
            yield batch
        self._epoch += 1
        self._received = 0

    def state_dict(self) -> dict[str, int]:
        """Return where it stands: after the batch that the loop was given last."""
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
        """Go on from there, with any world size and batch size.

        Raise InputError if the order would be another: another length, seed or shuffle.
        """
        mine = self.state_dict()
        for name in ("length", "seed", "shuffle"):
            if state[name] != mine[name]:
                raise InputError(
                    Problem(
                        where=f"checkpoint, sampler's {name}",
                        found=f"{state[name]}, but this training has {mine[name]}",
                        expected="the same: the order of the samples follows from it",
                        fix=f"train with {name} {state[name]}, or without the checkpoint",
                    )
                )
        self._epoch, self._received = state["epoch"], state["received"]

    def _iterate(self, batches: Iterable[Batch]) -> Iterator[Batch]:
        # A DataLoader draws a random number when it starts an epoch. The epoch that is resumed had already drawn it.
        if self._received == 0:
            return iter(batches)
        state = torch.get_rng_state()
        iterator = iter(batches)
        torch.set_rng_state(state)
        return iterator

    def _order(self) -> list[int]:
        if not self._shuffle:
            return list(range(self._length))
        # torch's CPU generator uses 32 bits of a seed: seed and epoch are mixed into them.
        seed = zlib.crc32(f"{self._seed} {self._epoch}".encode())
        order: list[int] = torch.randperm(self._length, generator=torch.Generator().manual_seed(seed)).tolist()
        return order

    def _end(self) -> int:
        if not self._drop_last:
            return self._length
        left = self._length - self._received
        return self._received + left // self.batch_size * self.batch_size

    def _share(self, batch: list[int]) -> list[int]:
        low, high = self._bounds(len(batch))
        return batch[low:high] or batch[:1]

    def _bounds(self, size: int) -> tuple[int, int]:
        return self._rank * size // self._world_size, (self._rank + 1) * size // self._world_size


_UNTRACKED = (
    "the batches of this ResumableSampler were not counted, so it cannot know where it stands: "
    "go through `for batch in sampler.track(loader)` instead of `for batch in loader`"
)
