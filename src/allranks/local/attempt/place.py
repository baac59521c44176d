"""The temporary folders of an attempt's instances, and paths that a shell reads as one word."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir

from allranks.local.instances import temporary

_PLAIN = re.compile(r"[\w@%+=:,./-]*", re.ASCII)
_SPECIAL = re.compile(r"[^\w@%+=:,.-]", re.ASCII)


def is_plain(path: str) -> bool:
    """Return whether a shell reads a path as one unchanged word."""
    return _PLAIN.fullmatch(path) is not None


def plain_name(name: str) -> str:
    """Return the name of a file without special characters, with the same suffix if that has none."""
    return _SPECIAL.sub("_", name)


TMP = "/tmp"
"""Where an instance of the rack has its own temporary folder."""


@dataclass(frozen=True)
class TemporaryFolder:
    """The temporary folder of an instance: its path on this machine, and as the instance sees it."""

    path: str
    seen: str


@contextlib.contextmanager
def temporary_folders(root: Path, count: int, *, own_tmp: bool) -> Iterator[list[TemporaryFolder]]:
    """Yield the temporary folder of each instance. Only the end of the event loop waits for their removal.

    root:    where instances with their own /tmp have their folders, on the disk of the workspace
    own_tmp: whether each instance has its own /tmp

    An instance without its own /tmp gets the folder's path, which is short, because the path of a Unix socket may have
    107 characters.
    """
    loop = asyncio.get_running_loop()
    with contextlib.ExitStack() as stack:
        if own_tmp:
            made = temporary.make(root, count)
            stack.callback(loop.run_in_executor, None, made.remove)
            folders = [TemporaryFolder(str(folder), TMP) for folder in made.instances]
        else:
            parent = None if is_plain(gettempdir()) else TMP
            folders = []
            for _ in range(count):
                shared = TemporaryDirectory(prefix="allranks-", dir=parent, ignore_cleanup_errors=True)
                stack.callback(loop.run_in_executor, None, shared.cleanup)
                folders.append(TemporaryFolder(shared.name, shared.name))
        yield folders
