"""index.json of a folder of WebDataset shards: what shard_dataset writes, and trainings read.

The shards themselves are tar files as WebDataset reads them (github.com/webdataset/webdataset): files with the same
name up to the first dot are one sample. Of an image: KEY.jpg (or another image format), KEY.cls with the number of the
class as text, and KEY.json with the name that the file had.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from allranks_steps.images.prepared_images import BadData

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

    classes:   names of the classes, by number; empty if the samples have no labels
    channels:  of every image: 1 grey, 3 colours
    size:      height and width of every image; None if they differ
    mean, std: of each channel, as fractions of 255; empty if they are not known
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
