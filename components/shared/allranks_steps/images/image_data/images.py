"""Image data of any form: the common types, and opening a folder."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from allranks_steps.images import prepared_images
from allranks_steps.images.prepared_images import BadData

# Statistics of ImageNet's training images, with which pre-trained models were trained.
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


@dataclass(frozen=True)
class ArrayImages:
    """A split of prepared images, mapped into memory."""

    images: prepared_images.Images

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, number: int) -> Decoded:
        return Decoded(self.images.pixels[number], int(self.images.labels[number]))


def _read_arrays(folder: Path) -> ImageData:
    """Read a folder of prepared images. Raise BadData."""
    about = prepared_images.read_description(folder)
    channels, height, width = about.shape
    return ImageData(
        kind="arrays",
        source=about.source,
        classes=about.classes,
        channels=channels,
        size=(height, width),
        mean=about.mean,
        std=about.std,
        splits={split: ArrayImages(prepared_images.read(folder, split)) for split in prepared_images.SPLITS},
    )


def kind(folder: Path) -> str:
    """Return the form of the data: arrays, shards or folders. Raise BadData if it is none of these."""
    from allranks_steps.images.image_data import folders, shards

    if (folder / prepared_images.DESCRIPTION).is_file():
        return "arrays"
    if (folder / shards.FILE).is_file():
        return "shards"
    if folder.is_dir() and folders.is_one(folder):
        return "folders"
    raise BadData(
        f"{folder} holds no {prepared_images.DESCRIPTION}, no {shards.FILE} and no folder `train`. Give the "
        "output of prepare_images or of shard_dataset, or a folder of image files, train/CLASS/NAME.jpg."
    )


def open_data(folder: Path, *, window: int = 1) -> ImageData:
    """Open the folder. Raise BadData if it holds no image data, or is damaged.

    window: number of samples of a shard that are shuffled together
    """
    found = kind(folder)
    if found == "arrays":
        return _read_arrays(folder)
    if found == "shards":
        from allranks_steps.images.image_data import shards

        return shards.read(folder, window)
    from allranks_steps.images.image_data import folders

    return folders.read(folder)
