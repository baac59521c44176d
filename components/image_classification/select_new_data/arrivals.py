"""The labelled images that have arrived, with digests of their content. Pixels are read on demand."""

import functools
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from allranks_steps.images import sources
from allranks_steps.images.prepared_images import BadData

DIGITS = 32
"""Hexadecimal digits of a digest: 128 bits are enough to avoid collisions."""


@dataclass(frozen=True)
class Arrival:
    """An image that has arrived.

    digest: of its content, independent of its name, location and time
    label:  an index into the classes
    pixels: reads the pixels, (channels, height, width) uint8
    """

    digest: str
    label: int
    pixels: Callable[[], NDArray[np.uint8]]


@dataclass(frozen=True)
class Arrivals:
    """All images that have arrived so far."""

    source: str
    classes: tuple[str, ...]
    images: tuple[Arrival, ...]


def arrived_images(folder: Path | None, image_size: int) -> Arrivals:
    """Return the images of a folder with one sub-folder for each class. Raise BadData if it is not one."""
    classes = sources.class_folders(folder)
    images = tuple(
        Arrival(file_digest(file), label, functools.partial(sources.square, file, image_size))
        for label, subfolder in enumerate(classes)
        for file in sources.image_files(subfolder)
    )
    return Arrivals("folder", tuple(subfolder.name for subfolder in classes), images)


def arrived_digits(arrived: float) -> Arrivals:
    """Return the first of scikit-learn's digits. arrived: the fraction that has arrived."""
    digits = sources.digits()
    count = round(arrived * len(digits.images))
    images = tuple(
        Arrival(digest(pixels.tobytes()), int(label), functools.partial(np.asarray, pixels))
        for pixels, label in zip(digits.images.pixels[:count], digits.images.labels[:count], strict=True)
    )
    return Arrivals("digits", digits.classes, images)


def file_digest(file: Path) -> str:
    """Return the digest of a file's content. Raise BadData if it cannot be read."""
    try:
        return digest(file.read_bytes())
    except OSError as error:
        raise BadData(f"{file} cannot be read ({error.strerror}). Repair or remove it.", "input folder") from None


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:DIGITS]
