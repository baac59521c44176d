"""CIFAR-10's python version: 60,000 colour images of 32 x 32 pixels, in a tarball of pickles.

https://www.cs.toronto.edu/~kriz/cifar.html describes the layout and gives the checksum. The tarball is never unpacked,
and its pickles are read by an unpickler that refuses all classes but arrays.
"""

from __future__ import annotations

import hashlib
import http.client
import io
import pickle
import shutil
import tarfile
import tempfile
import urllib.request
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from allranks_steps.images.prepared_images import BadData, Images
from allranks_steps.images.sources.collection import Collection

FOLDER = "cifar-10-batches-py"
TRAINING = tuple(f"data_batch_{number}" for number in range(1, 6))
SHAPE = (3, 32, 32)
ARRAY_PARTS = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"),  # as NumPy 1 wrote it
    ("numpy._core.multiarray", "_reconstruct"),
}
"""The globals in the pickle of an array."""
ARCHIVE, URL = "input archive", "input archive_url"
TIMEOUT = 60.0
"""Seconds to wait for the server."""


def read(archive: Path | None, url: str, md5: str) -> Collection:
    """Read the images of the archive if there is one, otherwise of the tarball at the URL.

    The test batch is CIFAR-10's own test set. Raise BadData if the tarball cannot be read, has another checksum, or is
    not CIFAR-10.
    """
    if archive is not None:
        if not archive.is_file():
            raise BadData(f"{archive} is not a file. Give cifar-10-python.tar.gz.", ARCHIVE)
        with archive.open("rb") as file:
            return from_tarball(file, str(archive), md5, ARCHIVE)
    with tempfile.TemporaryFile() as file:
        download(url, file)
        return from_tarball(file, url, md5, URL)


def download(url: str, file: BinaryIO) -> None:
    """Download the URL into the file. Raise BadData if it cannot be downloaded."""
    if not url.startswith(("https://", "http://")):
        raise BadData(f"archive_url {url!r} is not an http(s) address. Give one, or a file as `archive`.", URL)
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
            shutil.copyfileobj(response, file)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise BadData(
            f"{url} cannot be downloaded ({error}). Download it elsewhere and give it as `archive`.", URL
        ) from None


def from_tarball(file: BinaryIO, name: str, md5: str, where: str) -> Collection:
    """Read the images of an open tarball. Raise BadData for another checksum or content.

    md5:   the expected checksum, hexadecimal
    where: the input that messages name
    """
    file.seek(0)
    actual = checksum(file)
    if actual != md5.strip().lower():
        raise BadData(f"{name} has the MD5 checksum {actual}, expected {md5}. Download it again.", where)
    file.seek(0)
    try:
        with tarfile.open(fileobj=file, mode="r:*") as tarball:
            classes = tuple(str(label, "utf-8") for label in unpickle(tarball, "batches.meta")[b"label_names"])
            batches = [batch(tarball, member, len(classes)) for member in TRAINING]
            test = batch(tarball, "test_batch", len(classes))
    except (tarfile.TarError, EOFError, OSError, pickle.UnpicklingError, KeyError, TypeError, ValueError) as error:
        raise BadData(f"{name} is not CIFAR-10's python version ({error}). Download it again.", where) from None
    images = Images(
        np.concatenate([part.pixels for part in batches]), np.concatenate([part.labels for part in batches])
    )
    return Collection(classes, images, test)


def checksum(file: BinaryIO) -> str:
    """Return the MD5 checksum of an open file, hexadecimal."""
    digest = hashlib.md5(usedforsecurity=False)
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def batch(tarball: tarfile.TarFile, member: str, class_count: int) -> Images:
    """Return the images of one batch. Raise ValueError if the labels do not fit the images or the classes."""
    content = unpickle(tarball, member)
    pixels = np.asarray(content[b"data"], dtype=np.uint8).reshape(-1, *SHAPE)
    labels = np.asarray(content[b"labels"], dtype=np.int64)
    if labels.shape != (len(pixels),) or not np.isin(labels, np.arange(class_count)).all():
        raise ValueError(f"{member} has {len(pixels)} images and labels that do not fit them")
    return Images(pixels, labels)


def unpickle(tarball: tarfile.TarFile, member: str) -> Any:
    """Return the object in a member of the tarball."""
    file = tarball.extractfile(f"{FOLDER}/{member}")
    if file is None:
        raise ValueError(f"{member} is not a file")
    return ArrayUnpickler(io.BytesIO(file.read()), encoding="bytes").load()


class ArrayUnpickler(pickle.Unpickler):
    """Reads numbers, strings, containers and arrays. Refuses every other global, because it could run code."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ARRAY_PARTS:
            raise pickle.UnpicklingError(f"its pickle names {module}.{name}")
        return super().find_class(module, name)
