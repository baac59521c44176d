"""Batches of images of one size, prepared by loader workers or in the training's own process."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from allranks import runtime
from allranks_steps.images.image_data.augmentation import DRAWS, Augmentation, augment
from allranks_steps.images.image_data.decoding import Decoder
from allranks_steps.images.image_data.images import Encoded, Images


class Sample(NamedTuple):
    """pixels: (channels, height, width) uint8; draws: (DRAWS,), or none for evaluation"""

    pixels: Tensor
    label: int
    draws: Tensor


class Batch(NamedTuple):
    """pixels: (batch, channels, height, width) uint8; labels: (batch,); draws: (batch, DRAWS) if the images are
    changed on the device, otherwise None. An array, so that the data loader leaves the draws on the CPU, and choosing
    the changes does not wait for a GPU."""

    pixels: Tensor
    labels: Tensor
    draws: NDArray[np.float32] | None


class ImageSamples(Dataset[Sample]):
    """The samples of a split, decoded and cropped to one size.

    decoder:      None for arrays, whose images already have one size
    augmentation: None for evaluation
    """

    def __init__(self, images: Images, decoder: Decoder | None, augmentation: Augmentation | None) -> None:
        self.images, self.decoder, self.augmentation = images, decoder, augmentation

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, number: int) -> Sample:
        """Return a sample. Raise BadData for an image that cannot be read."""
        # The data loader has seeded the generator with the seed, the epoch and the number.
        draws = torch.empty(0) if self.augmentation is None else torch.rand(DRAWS)
        image = self.images[number]
        if not isinstance(image, Encoded):
            return Sample(torch.tensor(image.pixels), image.label, draws)
        assert self.decoder is not None
        if self.augmentation is None or self.augmentation.min_crop_scale == 1:
            pixels = self.decoder.centre(image)
        else:
            pixels = self.decoder.random(image, self.augmentation.min_crop_scale, draws.tolist())
        return Sample(torch.tensor(pixels), image.label, draws)


class Collate:
    """Combine samples into batches, and change their images unless that is done on the device.

    crop: whether images are cropped here, because they are arrays and not files
    """

    def __init__(self, augmentation: Augmentation | None, *, crop: bool, on_device: bool = False) -> None:
        self._augmentation, self._crop, self._on_device = augmentation, crop, on_device

    def __call__(self, samples: Sequence[Sample]) -> Batch:
        """Return a batch of the samples."""
        pixels = torch.stack([sample.pixels for sample in samples])
        labels = torch.tensor([sample.label for sample in samples])
        if self._augmentation is None:
            return Batch(pixels, labels, None)
        draws = torch.stack([sample.draws for sample in samples])
        batch = Batch(pixels, labels, draws.numpy())
        return batch if self._on_device else Batch(self.changed(batch), labels, None)

    def changed(self, batch: Batch) -> Tensor:
        """Return the pixels of a batch, changed on their device unless they already have been."""
        if self._augmentation is None or batch.draws is None:
            return batch.pixels
        return augment(batch.pixels, torch.from_numpy(batch.draws), self._augmentation, crop=self._crop)


def sampler(images: Images, ranks: runtime.Ranks, **options: Any) -> runtime.ResumableSampler | runtime.ShardSampler:
    """Return a sampler for images of any form. options: keyword arguments of the samplers"""
    if isinstance(images, runtime.ShardedDataset):
        return runtime.ShardSampler(images, ranks, **options)
    return runtime.ResumableSampler(len(images), ranks, **options)


def evaluation_loader(
    images: Images, decoder: Decoder | None, ranks: runtime.Ranks, *, per_device_batch_size: int, num_workers: int
) -> runtime.DataLoader:
    """Return a loader for one pass over the images in their order. Each rank gets a part.

    Every rank gets the same number of batches. `weight` is 0 for a repeated batch, which must not be
    counted.
    """
    return runtime.DataLoader(
        ImageSamples(images, decoder, None),
        sampler(images, ranks, batch_size=per_device_batch_size * ranks.world_size, shuffle=False),
        num_workers=num_workers,
        collate_fn=Collate(None, crop=False),
    )
