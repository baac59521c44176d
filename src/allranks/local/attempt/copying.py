"""Copy files and folders. On a file system that can share blocks (btrfs, XFS), a copy takes no time and no space.

A copy never shares its content with the original: a later change of one does not alter the other. Files are therefore
not hard-linked.
"""

import errno
import io
import os
import shutil
from pathlib import Path

from allranks.plan import file_tree
from allranks.plan.file_tree import FILE, FOLDER, LINK, Stop

PIECE = 1 << 24
"""Bytes that the kernel copies in one call. The copy can be stopped between two calls."""


def copy(source: Path, target: Path, stop: Stop | None = None) -> list[str]:
    """Copy a file or a folder. Return a line for each entry that was skipped because it has no content, such as a FIFO.

    Symbolic links are followed. A dangling link, or one to a parent folder, is copied as a link.

    Raise OSError if something cannot be copied, StoppedError once `stop` is set.
    """
    if not source.is_dir():
        _copy_file(source, target, stop)
        return []
    skipped, folders = [], [(source, target)]
    target.mkdir(parents=True, exist_ok=True)
    for entry in file_tree.entries(source, stop):
        place = target / entry.name
        if entry.kind == FOLDER:
            place.mkdir(exist_ok=True)
            folders.append((entry.path, place))
        elif entry.kind == FILE:
            _copy_file(entry.path, place, stop)
        elif entry.kind == LINK:
            place.unlink(missing_ok=True)
            place.symlink_to(entry.target)
        else:
            skipped.append(f"{entry.name} is a {entry.kind}, and was not copied")
    for original, made in reversed(folders):  # last, because a folder may become read-only
        shutil.copystat(original, made)
    return skipped


def _copy_file(source: Path, target: Path, stop: Stop | None) -> None:
    with file_tree.open_file(source) as original:
        # An unreadable source, such as one with I/O errors, must not leave an empty file.
        original.read(1)
        original.seek(0)
        # Without O_NONBLOCK, opening a FIFO at the target would block.
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_CLOEXEC
        with io.FileIO(os.open(target, flags, 0o666), "wb") as made:
            _copy_content(original, made, stop)
    shutil.copystat(source, target)


def _copy_content(original: io.FileIO, made: io.FileIO, stop: Stop | None) -> None:
    file_tree.check(stop)
    try:
        while os.copy_file_range(original.fileno(), made.fileno(), PIECE):
            file_tree.check(stop)
    except (AttributeError, OSError) as error:  # not on every system, nor between all file systems
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise
    # Done, unless the kernel cannot copy this file, or does not know its size, as below /proc.
    for chunk in file_tree.chunks(original, stop):
        view = memoryview(chunk)
        while view:
            view = view[made.write(view) :]
