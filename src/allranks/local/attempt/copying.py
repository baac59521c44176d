"""Copy files and folders without reading what need not be read: share their blocks on disk, or move them.

A copy never shares its content with the original: a later change of one does not alter the other. Files are therefore
not hard-linked. On a file system that can share blocks until one file is changed (btrfs, XFS), a copy takes no time and
no space.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import io
import os
import shutil
import stat
from pathlib import Path

from allranks.plan import file_tree
from allranks.plan.file_tree import FILE, FOLDER, LINK, Stop

FICLONE = 0x40049409
"""ioctl(2): share the blocks of another file."""

PIECE = 1 << 24
"""Bytes that the kernel copies in one call. In between, the copying can be stopped."""


def copy(source: Path, target: Path, stop: Stop | None = None, *, move: bool = False) -> list[str]:
    """Copy a file or a folder. Return a line for each entry that was left out because it has no content.

    move: whether files may be moved instead, because no process uses the source

    Links are followed. A link that leads nowhere, or to a folder above it, is a link in the copy too.

    Raise OSError if something cannot be copied, StoppedError once `stop` is set.
    """
    move = move and not source.is_symlink()
    if not source.is_dir():
        _bring_file(source, target, stop, move=move)
        return []
    left_out, folders = [], [(source, os.stat(source), target)]
    linked: set[str] = set()  # the folders that are elsewhere: what is in them is not this step's to move
    target.mkdir(parents=True, exist_ok=True)
    for entry in file_tree.entries(source, stop):
        place = target / entry.name
        is_linked = os.path.dirname(entry.name) in linked
        if entry.kind == FOLDER:
            if is_linked or entry.path.is_symlink():
                linked.add(entry.name)
            place.mkdir(exist_ok=True)
            assert entry.status is not None
            folders.append((entry.path, entry.status, place))
        elif entry.kind == FILE:
            _bring_file(entry.path, place, stop, move=move and not is_linked)
        elif entry.kind == LINK:
            place.unlink(missing_ok=True)
            place.symlink_to(entry.target)
        else:
            left_out.append(f"{entry.name} is a {entry.kind}, and was not copied")
    for original, status, made in reversed(folders):  # last, because a folder may become read-only
        shutil.copystat(original, made)
        os.utime(made, ns=(status.st_atime_ns, status.st_mtime_ns))  # the original's were changed if files were moved
    return left_out


def _bring_file(source: Path, target: Path, stop: Stop | None, *, move: bool) -> None:
    if not (move and _moved(source, target)):
        _copy_file(source, target, stop)


def _moved(source: Path, target: Path) -> bool:
    """Move a file if nothing else can change its content there. Return whether it was moved."""
    status = os.lstat(source)
    # A file with another name would still be changed under that name. A link at the target leads to the place that the
    # user wants to be written to.
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1 or target.is_symlink():
        return False
    try:
        os.rename(source, target)
    except OSError as error:
        # Another file system, or a folder that this user may not change.
        if error.errno in (errno.EXDEV, errno.EACCES, errno.EPERM, errno.EROFS):
            return False
        raise
    return True


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
    with contextlib.suppress(OSError):  # most file systems cannot share blocks
        fcntl.ioctl(made.fileno(), FICLONE, original.fileno())
        return
    try:
        while os.copy_file_range(original.fileno(), made.fileno(), PIECE):
            file_tree.check(stop)
    except (AttributeError, OSError) as error:  # not on every system, nor between all file systems
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
            raise
    # Nothing is left, unless the kernel cannot copy this file, or does not know its size, as below /proc.
    for chunk in file_tree.chunks(original, stop):
        view = memoryview(chunk)
        while view:
            view = view[made.write(view) :]
