"""Write a shard: a tar file that depends on its samples only."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import BinaryIO

from samples import Members

from allranks_steps.images.image_data.shard_index import Shard

READ_THREADS = 16
"""Samples that are read in parallel. A mounted store has a high latency but serves many requests at once."""


class HashedFile:
    """A file that is written from start to end, and the checksum of what was written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.sha256 = hashlib.sha256()
        self.bytes = 0

    def write(self, content: bytes) -> int:
        """Write bytes."""
        self.sha256.update(content)
        self.bytes += len(content)
        return self._file.write(content)


def write_shard(
    folder: Path, name: str, split: str, numbers: Sequence[int], keys: Sequence[str], read: Callable[[int], Members]
) -> Shard:
    """Write a tar file, and return its entry in the index.

    numbers: of the samples
    keys:    of the samples in the shard, without dots: WebDataset ends them at the first one
    read:    returns the files of a sample
    """
    from webdataset import TarWriter

    partial = folder / f"{name}.partial"
    try:
        with partial.open("wb") as file, ThreadPoolExecutor(READ_THREADS) as pool:
            hashed = HashedFile(file)
            # Without the time and the user, equal samples give equal files.
            with TarWriter(hashed, encoder=False, mtime=0.0, user="", group="") as tar:
                for start in range(0, len(numbers), 4 * READ_THREADS):  # not all in memory at once
                    some = slice(start, start + 4 * READ_THREADS)
                    for key, members in zip(keys[some], pool.map(read, numbers[some]), strict=True):
                        tar.write({"__key__": key, **members})
        partial.replace(folder / name)
    finally:
        partial.unlink(missing_ok=True)
    return Shard(name, split, len(numbers), hashed.bytes, hashed.sha256.hexdigest())
