"""The manifest of a checkpoint, which is written when every file of it is on disk: a folder without one is incomplete.

Not a rename of the folder: on a mounted blob container, a folder is renamed file by file.
"""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
BLOCK_BYTES = 1 << 25
"""Each block of a file has a checksum of its own, so that threads and ranks check a file together."""

_THREADS = 8


@dataclass(frozen=True)
class FileRecord:
    """Size in bytes of a file, and the CRC-32 of each of its blocks."""

    size: int
    checksums: tuple[int, ...]


@dataclass(frozen=True)
class Manifest:
    """Description of a complete checkpoint.

    step:       the step after which it was saved
    world_size: number of ranks that saved it
    metric:     the value given to `save`, None if there was none
    files:      the files, by name
    """

    step: int
    world_size: int
    metric: float | None
    files: Mapping[str, FileRecord] = field(default_factory=dict)


def write(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a checkpoint. It is complete, or not there."""
    content = json.dumps(asdict(manifest), sort_keys=True)
    document = {"checksum": zlib.crc32(content.encode()), "content": content}
    temporary = folder / f"{MANIFEST}.tmp"
    with temporary.open("w", encoding="utf-8") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / MANIFEST)
    sync_folder(folder)


def read(folder: Path) -> Manifest | None:
    """Return the manifest of a checkpoint, None if there is none or it is damaged."""
    try:
        document = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if zlib.crc32(document["content"].encode()) != document["checksum"]:
            return None
        content: dict[str, Any] = json.loads(document["content"])
        files = {
            name: FileRecord(record["size"], tuple(record["checksums"])) for name, record in content["files"].items()
        }
        return Manifest(content["step"], content["world_size"], content["metric"], files)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def is_intact(folder: Path, manifest: Manifest, rank: int = 0, world_size: int = 1) -> bool:
    """Return whether the files have the sizes and checksums of the manifest. Each rank checks a share of the blocks."""
    blocks: list[tuple[Path, int, int]] = []
    for name, record in sorted(manifest.files.items()):
        path = folder / name
        try:
            if path.stat().st_size != record.size:
                return False
        except OSError:
            return False
        blocks += [(path, number, checksum) for number, checksum in enumerate(record.checksums)]
    with ThreadPoolExecutor(_THREADS) as pool:
        return all(pool.map(_has_checksum, blocks[rank::world_size]))


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _has_checksum(block: tuple[Path, int, int]) -> bool:
    path, number, checksum = block
    try:
        with path.open("rb", buffering=0) as file:
            file.seek(number * BLOCK_BYTES)
            found, remaining = 0, BLOCK_BYTES
            while remaining and (data := file.read(min(remaining, 1 << 20))):
                found, remaining = zlib.crc32(data, found), remaining - len(data)
    except OSError:
        return False
    return found == checksum
