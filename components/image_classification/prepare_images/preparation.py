"""Read a source and write the folder of prepared images."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from splits import divide

from allranks_steps.images.prepared_images import BadData, Description, Images, describe, write
from allranks_steps.images.sources.collection import Collection


@dataclass(frozen=True)
class Request:
    """The component's inputs, which component.py describes."""

    source: str
    folder: Path | None
    archive: Path | None
    archive_url: str
    archive_md5: str
    image_size: int
    validation_fraction: float
    test_fraction: float
    seed: int


def prepare(request: Request, output: Path) -> Description:
    """Read the source, divide it, and write it to the output folder. Raise BadData before anything is written."""
    collection = SOURCES[request.source](request)
    splits = divided(collection, request)
    description = describe(request.source, collection.classes, splits)
    write(output, description, splits)
    return description


def divided(collection: Collection, request: Request) -> dict[str, Images]:
    """Return the collection's splits. The source's own test set is not changed."""
    generator = np.random.default_rng(request.seed)
    images, classes = collection.images, collection.classes
    if collection.test is not None:
        train, validation = divide(images, [request.validation_fraction], classes, generator)
        return {"train": train, "validation": validation, "test": collection.test}
    shares = [request.validation_fraction, request.test_fraction]
    train, validation, test = divide(images, shares, classes, generator)
    return {"train": train, "validation": validation, "test": test}


def digits(_: Request) -> Collection:
    from allranks_steps.images.sources.digits import read

    return read()


def cifar10(request: Request) -> Collection:
    from allranks_steps.images.sources.cifar10 import read

    return read(request.archive, request.archive_url, request.archive_md5)


def folder(request: Request) -> Collection:
    from allranks_steps.images.sources.folder import read

    if request.folder is None:
        raise BadData("source is 'folder', and no `folder` is given. Give a folder with one sub-folder for each class.")
    return read(request.folder, request.image_size)


# Each source is imported on use: only digits needs scikit-learn, only folder needs Pillow.
SOURCES: dict[str, Callable[[Request], Collection]] = {"digits": digits, "cifar10": cifar10, "folder": folder}
"""Reader of each source."""
