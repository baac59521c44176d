"""The LightningDataModule: prepared images, divided over the ranks, resumable within an epoch."""

import argparse
import functools
from collections.abc import Callable, Iterator
from typing import Any

import lightning
import numpy as np
import torch
from module import NO_LABEL
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, default_collate

from allranks_steps.images.image_data.augmentation import DRAWS, Augmentation, augment
from allranks_steps.images.prepared_images import Images
from allranks_steps.messages import bad_input


class ImageDataset(Dataset[tuple[Tensor, Tensor]]):
    """Images by their index; -1 is an image that is not counted."""

    def __init__(self, images: Images) -> None:
        self._images = images

    def __len__(self) -> int:
        return len(self._images)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        label = NO_LABEL if index < 0 else int(self._images.labels[index])
        return torch.tensor(self._images.pixels[index]), torch.tensor(label)


def changed_batch(samples: list[tuple[Tensor, Tensor]], augmentation: Augmentation) -> list[Tensor]:
    """Return the pixels of a batch, changed at random, and the labels."""
    pixels, labels = default_collate(samples)
    return [augment(pixels, torch.rand(len(pixels), DRAWS), augmentation, crop=False), labels]


class RankBatches:
    """A rank's batches of an epoch, for a DataLoader. Lightning calls set_epoch.

    Images that do not fill a batch of every rank are skipped. start: number of batches of the next epoch to skip
    """

    def __init__(self, count: int, batch: int, rank: int, world_size: int, seed: int) -> None:
        self.start = 0
        self._count, self._batch, self._rank, self._world_size, self._seed = count, batch, rank, world_size, seed
        self._epoch = 0

    def __len__(self) -> int:
        return self._count // (self._batch * self._world_size)

    def __iter__(self) -> Iterator[list[int]]:
        order = np.random.default_rng((self._seed, self._epoch)).permutation(self._count)
        start, self.start = self.start, 0
        for number in range(start, len(self)):
            first = (number * self._world_size + self._rank) * self._batch
            yield order[first : first + self._batch].tolist()

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, from 0, whose order comes next."""
        self._epoch = epoch


class ResumableLoader(DataLoader[tuple[Tensor, Tensor]]):
    """A DataLoader whose position Lightning saves and restores.

    batch_index: returns the number of batches of the epoch that the training has processed. The loader cannot count
                 them, because Lightning and the workers fetch ahead
    """

    def __init__(
        self,
        dataset: ImageDataset,
        batches: RankBatches,
        batch_index: Callable[[], int],
        world_size: int,
        **options: Any,
    ) -> None:
        super().__init__(dataset, batch_sampler=batches, **options)
        self._batches, self._batch_index, self._world_size = batches, batch_index, world_size

    def state_dict(self) -> dict[str, int]:
        return {"batch_index": self._batch_index(), "world_size": self._world_size}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Start the next epoch at the batch of the state. Raise InputError for another number of ranks."""
        if state["batch_index"] and state["world_size"] != self._world_size:
            found = f"a checkpoint within an epoch of {state['world_size']} ranks, for {self._world_size}"
            fix = "train with as many ranks, or resume from a checkpoint at the end of an epoch"
            raise bad_input("input resume_from_checkpoint", found, "as many ranks", fix)
        self._batches.start = state["batch_index"]


class PreparedImages(lightning.LightningDataModule):  # type: ignore[misc]  # its types are not read
    """Training and validation images. args: the inputs; pin_memory: of the loaders"""

    def __init__(
        self,
        train: Images,
        validation: Images,
        args: argparse.Namespace,
        *,
        rank: int,
        world_size: int,
        pin_memory: bool,
    ) -> None:
        super().__init__()
        self._train, self._validation = ImageDataset(train), ImageDataset(validation)
        augmentation = Augmentation(max_shift=args.max_shift, horizontal_flip=args.horizontal_flip)
        self._collate = functools.partial(changed_batch, augmentation=augmentation)
        self._options = {"num_workers": args.dataloader_num_workers, "pin_memory": pin_memory}
        self._eval_batch, self._rank, self._world_size = args.per_device_eval_batch_size, rank, world_size
        self.batches = RankBatches(len(train), args.per_device_train_batch_size, rank, world_size, args.seed)

    def train_dataloader(self) -> ResumableLoader:
        return ResumableLoader(
            self._train,
            self.batches,
            self._batch_index,
            self._world_size,
            collate_fn=self._collate,
            **self._options,
        )

    def val_dataloader(self) -> DataLoader[tuple[Tensor, Tensor]]:
        count = -(-len(self._validation) // self._world_size)
        # As many passes on every rank, which a sharded model needs.
        own = [*range(self._rank, len(self._validation), self._world_size)]
        own += [-1] * (count - len(own))
        return DataLoader(self._validation, sampler=own, batch_size=self._eval_batch, **self._options)

    def _batch_index(self) -> int:
        assert self.trainer is not None
        return int(self.trainer.fit_loop.epoch_loop.batch_progress.current.ready) % max(1, len(self.batches))
