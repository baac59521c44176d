"""The folder that `prepare_images` writes and that training and evaluation read.

    dataset.json                                    description of the images: `Description`
    train_pixels.npy, validation_..., test_...      uint8, (count, channels, height, width)
    train_labels.npy, validation_..., test_...      int64, (count,), an index into the classes

One array per file, so that the ranks of an instance map the same pages instead of each holding a copy.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from allranks.errors import InputError, Problem

SPLITS = ("train", "validation", "test")
DESCRIPTION = "dataset.json"


class BadData(InputError):
    """An InputError for image data that cannot be used. Nothing was written.

    where: the input
    """

    def __init__(self, found: str, where: str = "input data") -> None:
        super().__init__(Problem(where, found))


@dataclass(frozen=True)
class Images:
    """Labelled images: pixels (count, channels, height, width) uint8, labels (count,) int64."""

    pixels: NDArray[np.uint8]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, indices: NDArray[np.int64]) -> Images:
        return Images(self.pixels[indices], self.labels[indices])


@dataclass(frozen=True)
class Description:
    """The content of `dataset.json`.

    shape:     channels, height, width
    mean, std: of the training pixels as fractions of 255, one for each channel
    counts:    images in each split
    """

    source: str
    classes: tuple[str, ...]
    shape: tuple[int, int, int]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    counts: Mapping[str, int]


def describe(source: str, classes: tuple[str, ...], splits: Mapping[str, Images]) -> Description:
    """Return the description of these splits."""
    train = splits["train"].pixels
    _, channels, height, width = train.shape
    # Without images, a single zero replaces the pixels.
    by_channel = [
        (train[:, channel] if len(train) else np.zeros(1)).astype(np.float64) / 255 for channel in range(channels)
    ]
    return Description(
        source=source,
        classes=classes,
        shape=(channels, height, width),
        mean=tuple(float(values.mean()) for values in by_channel),
        # A constant channel has std 1, which avoids a division by zero.
        std=tuple(float(values.std()) or 1.0 for values in by_channel),
        counts={name: len(images) for name, images in splits.items()},
    )


def write(folder: Path, description: Description, splits: Mapping[str, Images]) -> None:
    """Write the splits and, last, their description. On failure, no partial files are left."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(prefix=".partial-", dir=folder))
    try:
        for name, images in splits.items():
            np.save(partial / f"{name}_pixels.npy", images.pixels)
            np.save(partial / f"{name}_labels.npy", images.labels)
        (partial / DESCRIPTION).write_text(json.dumps(asdict(description), indent=2) + "\n", encoding="utf-8")
        for file in sorted(partial.iterdir(), key=lambda file: file.name == DESCRIPTION):
            os.replace(file, folder / file.name)
    finally:
        shutil.rmtree(partial)


def read_description(folder: Path) -> Description:
    """Read `dataset.json` in the folder. Raise BadData if the folder was not written by prepare_images."""
    file = folder / DESCRIPTION
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        channels, height, width = content["shape"]
        return Description(
            source=content["source"],
            classes=tuple(content["classes"]),
            shape=(channels, height, width),
            mean=tuple(content["mean"]),
            std=tuple(content["std"]),
            counts=dict(content["counts"]),
        )
    except FileNotFoundError:
        raise BadData(f"{folder} holds no {DESCRIPTION}. Give the output `images` of prepare_images.") from None
    except (ValueError, KeyError, TypeError) as error:
        raise BadData(f"{file} is damaged ({error!r}). Run prepare_images again.") from None


def read(folder: Path, split: str) -> Images:
    """Return one of the SPLITS as read-only memory maps. Raise BadData if it is missing or damaged."""
    try:
        pixels, labels = (np.load(folder / f"{split}_{part}.npy", mmap_mode="r") for part in ("pixels", "labels"))
    except (OSError, ValueError) as error:
        raise BadData(f"{folder}: the {split} split cannot be read ({error}). Run prepare_images again.") from None
    return Images(pixels, labels)


def check_labels(description: Description, splits: Mapping[str, Images]) -> None:
    """Raise BadData if pixels, labels and description do not match, or a label is not a class index."""
    for split, images in splits.items():
        if images.labels.ndim != 1 or images.pixels.shape != (len(images.labels), *description.shape):
            raise BadData(
                f"the {split} split has pixels of shape {images.pixels.shape} and labels of shape {images.labels.shape}"
                f", but {DESCRIPTION} describes images of shape {description.shape}. Run prepare_images again."
            )
        if not len(images):
            continue
        lowest, highest = int(images.labels.min()), int(images.labels.max())
        if lowest < 0 or highest >= len(description.classes):
            label = lowest if lowest < 0 else highest
            raise BadData(
                f"the {split} split has the label {label}, but {DESCRIPTION} lists {len(description.classes)} "
                f"classes, 0 to {len(description.classes) - 1}. Prepare all splits together with prepare_images."
            )


def read_checked(folder: Path, *splits: str) -> tuple[Description, list[Images]]:
    """Return the description and these splits.

    Raise BadData if they cannot be read, a label is not a class index, or one of them has no image.
    """
    description, found = read_description(folder), {split: read(folder, split) for split in splits}
    check_labels(description, found)
    for split, images in found.items():
        if not len(images):
            raise BadData(f"no image in the {split} split. Give prepare_images a larger fraction for it.")
    return description, list(found.values())
