"""What every form of image data has in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

# The statistics of ImageNet's training images, which pre-trained models are normalised with.
RGB_MEAN, RGB_STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
GREY_MEAN, GREY_STD = (0.5,), (0.5,)


class Decoded(NamedTuple):
    """An image. pixels: (channels, height, width) uint8"""

    pixels: NDArray[np.uint8]
    label: int


class Encoded(NamedTuple):
    """The content of an image file. name: for messages"""

    name: str
    content: bytes
    label: int


class Images(Protocol):
    """The images of a split. `runtime.ShardedDataset` is one."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> Decoded | Encoded: ...


@dataclass(frozen=True)
class ImageData:
    """Labelled images.

    kind:      arrays, folders or shards
    source:    where the images come from, for the metrics
    size:      height and width of every image; None if they differ
    mean, std: of each channel, as fractions of 255
    splits:    by the names in prepared_images.SPLITS; a split without images may be missing
    """

    kind: str
    source: str
    classes: tuple[str, ...]
    channels: int
    size: tuple[int, int] | None
    mean: tuple[float, ...]
    std: tuple[float, ...]
    splits: Mapping[str, Images]

    def count(self, split: str) -> int:
        """Return the number of images in a split."""
        return len(self.splits[split]) if split in self.splits else 0
