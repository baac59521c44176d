"""Write a shard: a tar file that depends only on its samples."""

import functools
import hashlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from samples import Samples

from allranks_steps.images.image_data.shards import Shard

READ_THREADS = 16
"""Samples that are read in parallel. A mounted store has a high latency but serves many requests at once."""


@dataclass(frozen=True)
class ShardPlan:
    """A shard to write. numbers: of its samples in the split; first: position of the first in the shuffled split"""

    file: str
    split: str
    numbers: tuple[int, ...]
    first: int


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


def write_shard(folder: Path, plan: ShardPlan, samples: Samples) -> Shard:
    """Write the tar file, and return its entry in the index. Raise BadData for a sample that cannot be read."""
    from webdataset import TarWriter

    partial = folder / f"{plan.file}.partial"
    try:
        with partial.open("wb") as file, ThreadPoolExecutor(READ_THREADS) as pool:
            hashed = HashedFile(file)
            # Without the time and the user, equal samples give equal files.
            with TarWriter(hashed, encoder=False, mtime=0.0, user="", group="") as tar:
                for start in range(0, len(plan.numbers), 4 * READ_THREADS):  # not all in memory at once
                    numbers = plan.numbers[start : start + 4 * READ_THREADS]
                    read = pool.map(functools.partial(samples.read, plan.split), numbers)
                    for position, members in enumerate(read, plan.first + start):
                        tar.write({"__key__": f"{position:09d}", **members})
        partial.replace(folder / plan.file)
    finally:
        partial.unlink(missing_ok=True)
    return Shard(plan.file, plan.split, len(plan.numbers), hashed.bytes, hashed.sha256.hexdigest())
