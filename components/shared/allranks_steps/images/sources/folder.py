"""A folder of labelled images: one sub-folder for each class, named by the class."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

from allranks_steps.images.prepared_images import BadData, Images
from allranks_steps.images.sources.collection import Collection


def read(folder: Path, image_size: int) -> Collection:
    """Return every image as RGB, cropped to a centred square and resized to image_size x image_size pixels.

    Hidden files and files without an image suffix are ignored. Raise BadData if the folder is missing, has fewer than
    two classes, a class without images, or an image that cannot be read.
    """
    subfolders = class_folders(folder)
    files = [(label, file) for label, subfolder in enumerate(subfolders) for file in image_files(subfolder)]
    pixels = np.stack([square(file, image_size) for _, file in files])
    return Collection(
        classes=tuple(subfolder.name for subfolder in subfolders),
        images=Images(pixels, np.array([label for label, _ in files], dtype=np.int64)),
    )


def class_folders(folder: Path) -> list[Path]:
    """Return the sub-folders, one for each class, sorted. Raise BadData if there are fewer than two."""
    if not folder.is_dir():
        raise BadData(f"{folder} is not a folder. Give a folder with one sub-folder of images for each class.")
    subfolders = sorted(entry for entry in folder.iterdir() if entry.is_dir() and not entry.name.startswith("."))
    if len(subfolders) < 2:
        raise BadData(
            f"{folder} has {len(subfolders)} sub-folder(s), and each stands for a class. Give at least two classes."
        )
    return subfolders


def image_files(folder: Path) -> list[Path]:
    """Return the images in a class's folder and its sub-folders, sorted. Raise BadData if there is none."""
    suffixes = Image.registered_extensions()
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in suffixes and not file.name.startswith(".") and file.is_file()
    )
    if not files:
        raise BadData(f"class folder {folder} holds no image. Add images or remove the folder.")
    return files


def square(file: Path, size: int) -> np.ndarray:
    """Return the centre of an image as (3, size, size) uint8. Raise BadData if it cannot be read."""
    try:
        with Image.open(file) as image:
            upright = ImageOps.exif_transpose(image).convert("RGB")
            fitted = ImageOps.fit(upright, (size, size))
    # The errors of Pillow's decoders for damaged files have no common base class.
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        raise BadData(f"{file} cannot be read as an image ({error}). Repair or remove it.") from None
    pixels: np.ndarray = np.asarray(fitted, dtype=np.uint8)
    return pixels.transpose(2, 0, 1)
