"""WebDataset shards with an index, read from front to back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from allranks.runtime import ShardedDataset
from allranks_steps.images.image_data.folders import SUFFIXES
from allranks_steps.images.image_data.images import GREY_MEAN, GREY_STD, RGB_MEAN, RGB_STD, Encoded, ImageData
from allranks_steps.images.image_data.shard_index import FILE, Shard, read_index
from allranks_steps.images.prepared_images import SPLITS, BadData

IMAGE_KEYS = tuple(suffix[1:] for suffix in SUFFIXES)
LABEL_KEY = "cls"


@dataclass(frozen=True)
class ShardReader:
    """Reads the samples of a split's shards, in the workers of a data loader."""

    folder: Path
    shards: Sequence[Shard]
    class_count: int

    def __call__(self, shard: int, start: int) -> Iterator[Encoded]:
        """Yield the samples of a shard, from sample `start` on. Raise BadData for a damaged one."""
        from webdataset.tariterators import group_by_keys, tar_file_expander

        path = self.folder / self.shards[shard].file
        try:
            with path.open("rb") as file:
                samples = group_by_keys(tar_file_expander([{"stream": file, "url": str(path)}]))
                for number, sample in enumerate(samples):
                    if number >= start:
                        yield self._encoded(path, sample)
        except BadData:
            raise
        except Exception as error:  # of webdataset or tarfile, which have no common base class
            raise BadData(f"{path} cannot be read as a tar file ({error}). Run shard_dataset again.") from None

    def _encoded(self, path: Path, sample: dict[str, Any]) -> Encoded:
        name = f"{path}, sample {sample['__key__']}"
        content = next((sample[key] for key in IMAGE_KEYS if key in sample), None)
        if content is None or LABEL_KEY not in sample:
            found = ", ".join(sorted(key for key in sample if not key.startswith("__")))
            raise BadData(f"{name} has {found}. It has to have an image (such as jpg) and a label ({LABEL_KEY}).")
        try:
            label = int(sample[LABEL_KEY])
        except ValueError:
            raise BadData(f"{name} has the label {sample[LABEL_KEY][:40]!r}. It has to be a whole number.") from None
        if not 0 <= label < self.class_count:
            raise BadData(f"{name} has the label {label}, and there are {self.class_count} classes.")
        return Encoded(name, content, label)


def read(folder: Path, window: int) -> ImageData:
    """Read the index of a folder of shards. Raise BadData if it is damaged, a shard is missing, or has no labels.

    window: consecutive samples of a shard that are shuffled together, and held in memory by each loader worker
    """
    index = read_index(folder)
    if not index.classes:
        raise BadData(f"{folder / FILE} names no classes. Give shards of labelled images.")
    splits = {}
    for split in SPLITS:
        shards = [shard for shard in index.shards if shard.split == split]
        if shards:
            reader = ShardReader(folder, shards, len(index.classes))
            splits[split] = ShardedDataset([shard.samples for shard in shards], reader, window=window)
    mean, std = (GREY_MEAN, GREY_STD) if index.channels == 1 else (RGB_MEAN, RGB_STD)
    return ImageData(
        "shards", index.source, index.classes, index.channels, index.size, index.mean or mean, index.std or std, splits
    )
