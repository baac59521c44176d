"""A batch sampler whose order does not depend on the number of ranks, and which can resume within an epoch."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import torch

from allranks.runtime.data.global_batches import GlobalBatches, bounds
from allranks.runtime.ranks.ranks import Ranks


class ResumableSampler(GlobalBatches):
    """A batch sampler that yields this rank's share of every global batch, as indices into a data set.

    Together, N ranks process the same samples in each step as one process with the same batch size. The order depends
    on the seed and the epoch only. Every rank makes the same number of steps, also if the shares differ in size. A rank
    without a share of a small last batch gets one repeated sample with weight 0.

        loader = runtime.DataLoader(dataset, sampler, num_workers=4)
        for epoch in range(sampler.epoch, epochs):
            for images, labels in loader:
                loss = cross_entropy(model(images), labels) * sampler.weight

    length:     number of samples in the data set
    batch_size: number of samples per step over all ranks
    shuffle:    use another random order in every epoch
    drop_last:  drop the last samples of an epoch if they do not fill a batch

    GlobalBatches has its methods and attributes. The constructor raises InputError if there is no sample, or a batch
    has fewer samples than there are ranks.
    """

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
        super().__init__(length, ranks, batch_size=batch_size, shuffle=shuffle, seed=seed, drop_last=drop_last)

    def _remaining(self) -> Iterator[list[int]]:
        order = self._order()
        for start in range(self._received, self._end(), self.batch_size):
            batch = order[start : start + self.batch_size]
            low, high = bounds(self.ranks.rank, self.ranks.world_size, len(batch))
            yield batch[low:high] or batch[:1]

    def _order(self) -> list[int]:
        if not self._shuffle:
            return list(range(self.length))
        # torch's CPU generator uses 32 bits of a seed, so seed and epoch are hashed to 32 bits.
        seed = zlib.crc32(f"{self.seed} {self.epoch}".encode())
        order: list[int] = torch.randperm(self.length, generator=torch.Generator().manual_seed(seed)).tolist()
        return order

    def _end(self) -> int:
        if not self._drop_last:
            return self.length
        remaining = self.length - self._received
        return self._received + remaining // self.batch_size * self.batch_size
