"""Disk space for a job's outputs: checked before the first step, and reported by name if it runs out later."""

import os
import shutil
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from allranks.contract import report
from allranks.errors import InputError, Problem, raise_any


class _Ranks(Protocol):
    """Ranks of `allranks.runtime` or of `allranks.runtime.sockets`."""

    @property
    def is_main(self) -> bool: ...

    def broadcast(self, value: Any) -> Any: ...


@dataclass(frozen=True)
class Content:
    """The content that a job will write to a folder.

    where:  output or input of the folder, for messages, such as "output checkpoints"
    folder: the folder, which may not exist yet
    size:   bytes of one item: a model, a checkpoint
    count:  number of items that exist at the same time
    fix:    fix in the message if space is missing
    """

    where: str
    folder: Path
    size: int
    count: int = 1
    fix: str = field(default="free some space, or write to a larger disk", compare=False)

    def missing(self) -> int:
        """Return the bytes still to be written, given what an earlier attempt has left in the folder.

        Of several items, a new one is written before the oldest is removed.
        """
        remaining = self.size * self.count - _size(self.folder)
        return max(remaining, self.size if self.count > 1 else 0)


def outputs_of_training(
    model: Path, model_size: int, checkpoints: Path, checkpoint_size: int, keep: int, *, best: bool = False
) -> list[Content]:
    """Return what a training writes to its outputs `model` and `checkpoints`: their folders, and bytes of one item.

    keep: number of newest checkpoints to keep, the input save_total_limit
    best: whether the checkpoint with the best metric is also kept
    """
    fix = "use a larger disk, or a smaller save_total_limit"
    count = keep + best + 1  # the next one is complete before the oldest is removed
    return [
        Content("output model", model, model_size),
        Content("output checkpoints", checkpoints, checkpoint_size, count, fix),
    ]


def require_room(contents: Iterable[Content], ranks: _Ranks | None = None) -> None:
    """Raise InputError if the file systems lack space for the content that a job will write.

    contents: folders on the same file system share its free space
    ranks:    the ranks of the job. Rank 0 measures, and all ranks raise the same error: a collective. None if each
              process measures for itself, such as a folder on its own instance

    Call it before the first step. A file system that does not report its size is not checked.
    """
    problems = _problems(list(contents)) if ranks is None or ranks.is_main else []
    if ranks is not None:
        # As plain lists, because the ranks of a job without torch send JSON.
        lines = [[problem.where, problem.found, problem.expected, problem.fix] for problem in problems]
        problems = [Problem(*line) for line in ranks.broadcast(lines)]
    raise_any(problems)


@contextmanager
def full_output_refused(where: str, folder: Path) -> Generator[None]:
    """Context manager that raises InputError if a disk is full, or a quota reached, while an output is written.

    where:  the output, for the message: "output model"
    folder: its folder

    Errors of libraries are recognised by the error that caused them, or by their message.
    """
    try:
        yield
    except Exception as error:
        if not _is_full(error):
            raise
        found = f"no space left while writing to {folder}"
        raise InputError(Problem(where, found, fix="free some space, or write to a larger disk")) from error


def _problems(contents: list[Content]) -> list[Problem]:
    missing = [content.missing() for content in contents]
    disks = [_existing(content.folder) for content in contents]
    problems = []
    for content, own, disk in zip(contents, missing, disks, strict=True):
        usage = shutil.disk_usage(disk)
        device = disk.stat().st_dev
        needed = sum(other for other, place in zip(missing, disks, strict=True) if place.stat().st_dev == device)
        # Some FUSE file systems report zeros.
        if usage.total and own and usage.free < needed:
            items = f" ({content.count} of {_text(content.size)} at a time)" if content.count > 1 else ""
            shared = f", and {_text(needed)} with the job's other files on this disk" if needed > own else ""
            problems.append(
                Problem(
                    content.where, f"{_text(usage.free)} free in {disk}", f"{_text(own)}{items}{shared}", content.fix
                )
            )
    return problems


def _existing(folder: Path) -> Path:
    return next(place for place in (folder, *folder.absolute().parents) if place.is_dir())


def _size(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except FileNotFoundError:  # removed meanwhile
                continue
    return total


def _is_full(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, OSError) and error.errno in report.FULL_DISK_NUMBERS:
            return True
        # shutil.copytree collects its errors as text. Libraries in Rust and C++ write the system's text or their own.
        if report.tells_of_full_disk(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


def _text(size: int) -> str:
    """Return a number of bytes with a unit."""
    number, units = float(size), ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while number >= 1024 and len(units) > 1:
        number /= 1024
        units.pop(0)
    return f"{size:,} bytes" if units[0] == "bytes" else f"{number:.1f} {units[0]}"
