"""WebDataset shards with an index, index.json, which shard_dataset writes and trainings read sequentially.

The shards themselves are tar files as WebDataset reads them (github.com/webdataset/webdataset): files with the same
name up to the first dot are one sample. Of an image: KEY.jpg (or another image format), KEY.cls with the number of the
class as text, and KEY.json with the name that the file had.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from allranks.runtime import ShardedDataset
from allranks_steps.images.image_data.folders import SUFFIXES
from allranks_steps.images.image_data.images import GREY_MEAN, GREY_STD, RGB_MEAN, RGB_STD, Encoded, ImageData
from allranks_steps.images.prepared_images import SPLITS, BadData

FILE = "index.json"
FORMAT = "allranks shards 1"


@dataclass(frozen=True)
class Shard:
    """A tar file. samples: their number; bytes: size of the file; sha256: its checksum, hexadecimal"""

    file: str
    split: str
    samples: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class Index:
    """The content of index.json.

    classes:   names of the classes, by label; empty if the samples have no labels
    channels:  of every image: 1 grey, 3 colours
    size:      height and width of every image; None if they differ
    mean, std: of each channel, as fractions of 255; empty if unknown
    """

    source: str
    classes: tuple[str, ...]
    shards: tuple[Shard, ...]
    channels: int = 3
    size: tuple[int, int] | None = None
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()


def write_index(folder: Path, index: Index) -> None:
    """Write index.json. Equal content gives equal files."""
    counts: dict[str, int] = {}
    for shard in index.shards:
        counts[shard.split] = counts.get(shard.split, 0) + shard.samples
    content = {"format": FORMAT, "samples": counts} | asdict(index)
    (folder / FILE).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read_index(folder: Path) -> Index:
    """Read index.json. Raise BadData if it is damaged, or a shard is missing or has another size."""
    file = folder / FILE
    try:
        content: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        index = Index(
            source=str(content["source"]),
            classes=tuple(content["classes"]),
            shards=tuple(Shard(**shard) for shard in content["shards"]),
            channels=int(content["channels"]),
            size=tuple(content["size"]) if content["size"] else None,
            mean=tuple(content["mean"]),
            std=tuple(content["std"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadData(f"{file} is damaged ({error!r}). Run shard_dataset again.") from None
    sizes = {entry.name: entry.stat().st_size for entry in os.scandir(folder)}
    for shard in index.shards:
        size = sizes.get(shard.file)
        if size != shard.bytes:
            found = "is missing" if size is None else f"has {size} bytes instead of {shard.bytes}"
            raise BadData(f"{folder / shard.file} {found}. Run shard_dataset again.")
    return index


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
