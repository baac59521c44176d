"""The arrays that prepare_images writes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from allranks_steps.images import prepared_images
from allranks_steps.images.image_data.images import Decoded, ImageData


@dataclass(frozen=True)
class ArrayImages:
    """A split of prepared images, mapped into memory."""

    images: prepared_images.Images

    def __len__(self) -> int:
        return len(self.images)

    def __getitem__(self, number: int) -> Decoded:
        return Decoded(self.images.pixels[number], int(self.images.labels[number]))


def read(folder: Path) -> ImageData:
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
