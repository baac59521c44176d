"""The checkpoints in a folder, and their manifests.

A manifest is written when every file of its checkpoint is on disk: a folder without one is incomplete. Folders are not
renamed, because a mounted blob container renames a folder file by file.
"""

import json
import math
import os
import re
import shutil
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from allranks.errors import InputError, Problem
from allranks.runtime.notes import note

MANIFEST = "manifest.json"
METADATA = ".metadata"
"""torch's own description of a checkpoint, which is one of its files."""

FORMAT, _FIRST_FORMAT = 2, 1
"""The current format, and the format of manifests without a number, with tensors in safetensors files."""

BLOCK_BYTES = 1 << 25
"""Each block of a file has its own checksum, so that threads and ranks can share the check of a file."""

_THREADS = 8
_NAME = re.compile(r"step_(\d+)")
MODES = ("min", "max")


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
    format:     version of the format
    """

    step: int
    world_size: int
    metric: float | None
    files: Mapping[str, FileRecord] = field(default_factory=dict)
    format: int = FORMAT


@dataclass(frozen=True)
class Entry:
    """A checkpoint whose content has not been checked.

    manifest: None if it is incomplete or damaged
    """

    step: int
    path: Path
    manifest: Manifest | None


def write(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a checkpoint. The file is complete or absent."""
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
    """Return the manifest of a checkpoint; None if it is missing or damaged."""
    try:
        document = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
        if zlib.crc32(document["content"].encode()) != document["checksum"]:
            return None
        content: dict[str, Any] = json.loads(document["content"])
        files = {
            name: FileRecord(record["size"], tuple(record["checksums"])) for name, record in content["files"].items()
        }
        return Manifest(
            content["step"], content["world_size"], content["metric"], files, content.get("format", _FIRST_FORMAT)
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def is_intact(entry: Entry, rank: int = 0, world_size: int = 1) -> bool:
    """Return whether the files have the sizes and checksums of the manifest. Each rank checks a share of the blocks.

    Raise InputError if it is a checkpoint of another format.
    """
    if entry.manifest is None:
        return False
    if entry.manifest.format != FORMAT:
        found = f"format {entry.manifest.format}"
        if entry.manifest.format == _FIRST_FORMAT:
            found += ", with which previews of allranks 0.1 saved tensors in safetensors files"
        expected = f"format {FORMAT}, the one of torch.distributed.checkpoint"
        fix = "resume with the version that saved it, or use a folder without its checkpoints"
        raise InputError(Problem(f"checkpoint {entry.path}", found, expected, fix, code="checkpoints"))
    blocks: list[tuple[Path, int, int]] = []
    for name, record in sorted(entry.manifest.files.items()):
        path = entry.path / name
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


def checkpoint_path(folder: Path, step: int) -> Path:
    return folder / f"step_{step:09d}"


def entries(folder: Path) -> list[Entry]:
    """Return the checkpoints in a folder, the newest first."""
    found = [Entry(step, path, read(path)) for step, path in _paths(folder)]
    return sorted(found, key=lambda entry: entry.step, reverse=True)


def complete(folder: Path) -> list[Entry]:
    """Return the complete checkpoints in a folder, the newest first."""
    return [entry for entry in entries(folder) if entry.manifest is not None]


def remove_incomplete(folder: Path) -> None:
    """Remove the incomplete checkpoints that killed processes left. No process may be saving."""
    for _, path in _paths(folder):
        if not (path / MANIFEST).exists():
            note(f"{path} is incomplete, because a process was ended while saving it: removed")
            shutil.rmtree(path, ignore_errors=True)


def best(candidates: list[Entry], mode: str) -> Entry | None:
    """Return the newest of the checkpoints with the best metric; None if no checkpoint has a metric."""
    measured = [
        (entry.manifest.metric, entry)
        for entry in candidates
        if entry.manifest and entry.manifest.metric is not None and not math.isnan(entry.manifest.metric)
    ]
    sign = 1 if mode == "max" else -1
    return max(measured, key=lambda pair: (sign * pair[0], pair[1].step))[1] if measured else None


def remove_old(folder: Path, step: int, keep: int, mode: str) -> None:
    """Remove the checkpoints before a step, other than the newest and the best one.

    step: the step that was saved last. Later ones belong to another attempt and remain.
    keep: number of the newest ones
    mode: whether the best metric is the lowest ("min") or the highest ("max")
    """
    candidates = [entry for entry in complete(folder) if entry.step <= step]
    best_one = best(candidates, mode)
    for entry in candidates[keep:]:
        if entry != best_one:
            (entry.path / MANIFEST).unlink(missing_ok=True)  # first, so that it is never half a checkpoint
            shutil.rmtree(entry.path, ignore_errors=True)


def remove_strays(path: Path, description: Manifest) -> None:
    """Remove files of a checkpoint's folder that do not belong to it, from an earlier attempt at the same step."""
    for file in path.iterdir():
        if file.name != MANIFEST and file.name not in description.files:
            file.unlink(missing_ok=True)


def _paths(folder: Path) -> Iterator[tuple[int, Path]]:
    if folder.is_dir():
        for path in folder.iterdir():
            if path.is_dir() and (match := _NAME.fullmatch(path.name)):
                yield int(match[1]), path
