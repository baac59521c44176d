"""Where labelled images come from: scikit-learn, or a folder with one sub-folder for each class, named by the class."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from allranks_steps.images.image_data.decoding import decoding_errors
from allranks_steps.images.image_data.folders import class_names
from allranks_steps.images.prepared_images import BadData, Images


@dataclass(frozen=True)
class Collection:
    """Labelled images and the names of their classes."""

    classes: tuple[str, ...]
    images: Images


def digits() -> Collection:
    """Return the handwritten digits of scikit-learn, 1797 grey images of 8 x 8 pixels, with their 17 shades (0 to 16)
    scaled to 0 to 255."""
    from sklearn.datasets import load_digits

    found = load_digits()
    pixels = np.rint(found.images * (255 / 16)).astype(np.uint8)[:, np.newaxis]
    return Collection(
        classes=tuple(str(name) for name in found.target_names),
        images=Images(pixels, found.target.astype(np.int64)),
    )


WHERE = "input folder"  # of prepare_images and select_new_data


def folder_of_classes(folder: Path | None, image_size: int) -> Collection:
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


def class_folders(folder: Path | None) -> list[Path]:
    """Return the sub-folders, one for each class, sorted. Raise BadData if there are fewer than two."""
    if folder is None or not folder.is_dir():
        found = "source is 'folder', and no `folder` is given" if folder is None else f"{folder} is not a folder"
        raise BadData(f"{found}. Give a folder with one sub-folder of images for each class.", WHERE)
    return [folder / name for name in class_names(folder, WHERE)]


def image_files(folder: Path) -> list[Path]:
    """Return the images in a class's folder and its sub-folders, sorted. Raise BadData if there is none."""
    suffixes = Image.registered_extensions()
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in suffixes and not file.name.startswith(".") and file.is_file()
    )
    if not files:
        raise BadData(f"class folder {folder} holds no image. Add images or remove the folder.", WHERE)
    return files


def square(file: Path, size: int) -> NDArray[np.uint8]:
    """Return the centre of an image as (3, size, size) uint8. Raise BadData if it cannot be read."""
    with decoding_errors(str(file), WHERE), Image.open(file) as image:
        fitted = ImageOps.fit(ImageOps.exif_transpose(image).convert("RGB"), (size, size))
    pixels: NDArray[np.uint8] = np.asarray(fitted, dtype=np.uint8).transpose(2, 0, 1)
    return pixels
