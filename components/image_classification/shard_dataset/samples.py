"""The samples of a data set, which become samples of shards."""

import io
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

from allranks_steps.images.image_data.decoding import decoding_errors
from allranks_steps.images.image_data.folders import FolderImages
from allranks_steps.images.image_data.images import ArrayImages, Decoded, ImageData, kind, open_data
from allranks_steps.images.prepared_images import BadData

Members = Mapping[str, bytes]
"""The files of a sample, by their extensions."""


@dataclass(frozen=True)
class Samples:
    """The samples to write to shards.

    counts: number of samples in each split
    read:   returns the files of a sample of a split; raises BadData
    images: the image data; None for other files
    """

    source: str
    counts: Mapping[str, int]
    read: Callable[[str, int], Members]
    images: ImageData | None


def find(folder: Path, *, verify: bool) -> Samples:
    """Return the samples of prepared images, of folders of image files, or of a folder of any files.

    verify: whether images of files are decoded when they are read, so that a damaged one is found

    Raise BadData if there is none, or the folder holds shards already.
    """
    try:
        found = kind(folder)
    except BadData:
        return _of_files(folder)
    if found == "shards":
        raise BadData(f"{folder} holds shards already. Give prepared images or a folder of files.")
    data = open_data(folder)
    if data.channels not in (1, 3):
        raise BadData(f"{folder} holds images of {data.channels} channels. Image files have 1 or 3.")

    def read(split: str, number: int) -> Members:
        images = data.splits[split]
        if isinstance(images, ArrayImages):
            return _of_array(images[number], f"{split}/{number}", data.classes)
        assert isinstance(images, FolderImages)
        image = images[number]
        if verify:
            with decoding_errors(image.name), Image.open(io.BytesIO(image.content)) as opened:
                opened.load()
        name = os.path.relpath(image.name, folder)
        return _labelled(Path(name).suffix[1:].lower(), image.content, image.label, name, data.classes)

    return Samples(data.source, {split: data.count(split) for split in data.splits}, read, data)


def _of_array(image: Decoded, name: str, classes: Sequence[str]) -> Members:
    pixels = image.pixels[0] if len(image.pixels) == 1 else image.pixels.transpose(1, 2, 0)
    content = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(pixels)).save(content, format="PNG")
    return _labelled("png", content.getvalue(), image.label, name, classes)


def _labelled(extension: str, content: bytes, label: int, name: str, classes: Sequence[str]) -> Members:
    about = json.dumps({"class": classes[label], "name": name}, sort_keys=True)
    return {extension: content, "cls": str(label).encode(), "json": about.encode()}


def _of_files(folder: Path) -> Samples:
    """Return the samples of a folder of any files: files of a folder with the same name up to the first dot are one
    sample, as WebDataset has it."""
    groups: dict[tuple[str, str], list[str]] = {}
    for place, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            stem, dot, _ = name.partition(".")
            if stem and dot:
                groups.setdefault((os.path.relpath(place, folder), stem), []).append(name)
    if not groups:
        raise BadData(f"{folder} holds no file with an extension. Give prepared images or a folder of files.")
    keys = list(groups)

    def read(_split: str, number: int) -> Members:
        place, stem = keys[number]
        members = {}
        for name in groups[keys[number]]:
            path = folder / place / name
            try:
                members[name.partition(".")[2].lower()] = path.read_bytes()
            except OSError as error:
                raise BadData(f"{path} cannot be read ({error.strerror}). Repair or remove it.") from None
        about = {"name": os.path.normpath(os.path.join(place, stem))}
        return members if "json" in members else members | {"json": json.dumps(about).encode()}

    return Samples(folder.name, {"train": len(keys)}, read, None)
