"""Folders of image files: SPLIT/CLASS/NAME.jpg."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from allranks_steps.images.image_data.images import RGB_MEAN, RGB_STD, Encoded, ImageData
from allranks_steps.images.prepared_images import SPLITS, BadData

SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".ppm", ".pgm", ".gif")
"""Suffixes of image files. Other files are ignored."""


@dataclass(frozen=True)
class FolderImages:
    """The image files of a split.

    names:  paths relative to the folder, (count,), as bytes in one array: loader workers share its memory
    labels: (count,), an index into the classes
    """

    folder: Path
    names: NDArray[np.bytes_]
    labels: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, number: int) -> Encoded:
        path = self.folder / os.fsdecode(bytes(self.names[number]))
        try:
            content = path.read_bytes()
        except OSError as error:
            raise BadData(f"{path} cannot be read ({error.strerror}). Repair or remove it.") from None
        return Encoded(str(path), content, int(self.labels[number]))


def is_one(folder: Path) -> bool:
    """Return whether the folder has a sub-folder of a split."""
    return any((folder / split).is_dir() for split in SPLITS)


def read(folder: Path) -> ImageData:
    """List the image files. The classes are the sub-folders of the training set, sorted, or of the first split.

    Raise BadData if there are fewer than two classes, a class has no image, or a split has another class.
    """
    present = [split for split in SPLITS if (folder / split).is_dir()]
    classes = tuple(class_names(folder / present[0]))
    splits = {split: _split(folder, split, classes) for split in present}
    return ImageData("folders", folder.name, classes, 3, None, RGB_MEAN, RGB_STD, splits)


def class_names(folder: Path, where: str = "input data") -> list[str]:
    """Return the names of the sub-folders, one for each class, sorted. Raise BadData if there are fewer than two."""
    names = _subfolders(folder)
    if len(names) < 2:
        found = f"{folder} has {len(names)} sub-folder(s), and each stands for a class"
        raise BadData(f"{found}. Give at least two classes.", where)
    return names


def _split(folder: Path, split: str, classes: tuple[str, ...]) -> FolderImages:
    unknown = sorted(set(_subfolders(folder / split)) - set(classes))
    if unknown:
        raise BadData(f"{folder / split} has the class {unknown[0]!r}, which the training set does not have.")
    names: list[bytes] = []
    counts = []
    for name in classes:
        before = len(names)
        names += sorted(_image_files(folder, f"{split}/{name}"))
        counts.append(len(names) - before)
        if split == "train" and counts[-1] == 0:
            raise BadData(f"class folder {folder / split / name} holds no image. Add images or remove the folder.")
    labels = np.repeat(np.arange(len(classes), dtype=np.int64), counts)
    return FolderImages(folder, np.array(names, dtype=np.bytes_), labels)


def _subfolders(folder: Path) -> list[str]:
    return sorted(entry.name for entry in os.scandir(folder) if entry.is_dir() and not entry.name.startswith("."))


def _image_files(folder: Path, below: str) -> Iterator[bytes]:
    for place, _, names in os.walk(folder / below):
        relative = os.path.relpath(place, folder)
        for name in names:
            if name.lower().endswith(SUFFIXES) and not name.startswith("."):
                yield os.fsencode(os.path.join(relative, name))
