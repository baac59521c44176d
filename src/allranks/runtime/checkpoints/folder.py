"""The checkpoints in a folder: which there are, and which are kept."""

from __future__ import annotations

import math
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from allranks.runtime.checkpoints import manifest
from allranks.runtime.checkpoints.manifest import MANIFEST, Manifest
from allranks.runtime.notes import note

_NAME = re.compile(r"step_(\d+)")
MODES = ("min", "max")


@dataclass(frozen=True)
class Entry:
    """A checkpoint whose content has not been checked.

    manifest: None if it is incomplete or damaged
    """

    step: int
    path: Path
    manifest: Manifest | None


def path_of(folder: Path, step: int) -> Path:
    """Return the folder of the checkpoint of a step."""
    return folder / f"step_{step:09d}"


def entries(folder: Path) -> list[Entry]:
    """Return the checkpoints in a folder, the newest first."""
    found = [Entry(step, path, manifest.read(path)) for step, path in _paths(folder)]
    return sorted(found, key=lambda entry: entry.step, reverse=True)


def complete(folder: Path) -> list[Entry]:
    """Return the checkpoints in a folder without those that are incomplete, the newest first."""
    return [entry for entry in entries(folder) if entry.manifest is not None]


def remove_incomplete(folder: Path) -> None:
    """Remove what killed processes left. No process may be saving."""
    for _, path in _paths(folder):
        if not (path / MANIFEST).exists():
            note(f"{path} is incomplete, because a process was ended while saving it: removed")
            shutil.rmtree(path, ignore_errors=True)


def best(candidates: list[Entry], mode: str) -> Entry | None:
    """Return the newest of the checkpoints with the best metric, None if none has a metric."""
    measured = [
        (entry.manifest.metric, entry)
        for entry in candidates
        if entry.manifest and entry.manifest.metric is not None and not math.isnan(entry.manifest.metric)
    ]
    sign = 1 if mode == "max" else -1
    return max(measured, key=lambda pair: (sign * pair[0], pair[1].step))[1] if measured else None


def remove_old(folder: Path, step: int, keep: int, mode: str) -> None:
    """Remove the checkpoints before a step, other than the newest and the best one.

    step: the step that was saved last. Later ones are of another attempt, and remain.
    keep: number of the newest ones
    mode: whether the best metric is the lowest ("min") or the highest ("max")
    """
    candidates = [entry for entry in complete(folder) if entry.step <= step]
    best_one = best(candidates, mode)
    for entry in candidates[keep:]:
        if entry != best_one:
            _remove(entry.path)


def remove_strays(path: Path, description: Manifest) -> None:
    """Remove files of a checkpoint's folder that do not belong to it, from an earlier attempt at the same step."""
    for file in path.iterdir():
        if file.name != MANIFEST and file.name not in description.files:
            file.unlink(missing_ok=True)


def _remove(path: Path) -> None:
    (path / MANIFEST).unlink(missing_ok=True)  # first, so that it is never half a checkpoint
    shutil.rmtree(path, ignore_errors=True)


def _paths(folder: Path) -> Iterator[tuple[int, Path]]:
    if folder.is_dir():
        for path in folder.iterdir():
            if path.is_dir() and (match := _NAME.fullmatch(path.name)):
                yield int(match[1]), path
