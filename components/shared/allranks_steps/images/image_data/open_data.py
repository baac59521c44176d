"""Open image data of any form."""

from __future__ import annotations

from pathlib import Path

from allranks_steps.images import prepared_images
from allranks_steps.images.image_data import shard_index
from allranks_steps.images.image_data.images import ImageData
from allranks_steps.images.prepared_images import BadData


def kind(folder: Path) -> str:
    """Return arrays, shards or folders. Raise BadData if the folder holds nothing of these."""
    from allranks_steps.images.image_data import folders

    if (folder / prepared_images.DESCRIPTION).is_file():
        return "arrays"
    if (folder / shard_index.FILE).is_file():
        return "shards"
    if folder.is_dir() and folders.is_one(folder):
        return "folders"
    raise BadData(
        f"{folder} holds no {prepared_images.DESCRIPTION}, no {shard_index.FILE} and no folder `train`. Give the "
        "output of prepare_images or of shard_dataset, or a folder of image files, train/CLASS/NAME.jpg."
    )


def open_data(folder: Path, *, window: int = 1) -> ImageData:
    """Open the folder. Raise BadData if it holds no image data, or is damaged.

    window: samples of a shard that are shuffled together
    """
    found = kind(folder)
    if found == "arrays":
        from allranks_steps.images.image_data import arrays

        return arrays.read(folder)
    if found == "shards":
        from allranks_steps.images.image_data import shards

        return shards.read(folder, window)
    from allranks_steps.images.image_data import folders

    return folders.read(folder)
