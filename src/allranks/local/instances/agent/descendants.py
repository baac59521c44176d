"""Every process below this one: found by walking /proc, ended for good."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection


def descendants(root: int) -> list[int]:
    """Ids of the processes below `root`, its children first."""
    children = _by_parent()
    found: list[int] = []
    level = [root]
    while level:
        level = [child for parent in level for child in children.get(parent, ())]
        found += level
    return found


def _by_parent() -> dict[int, list[int]]:
    """Return the children of every process of this machine, by their parent."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    # The name in parentheses may itself hold spaces and parentheses.
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue  # it ended while we looked
            children.setdefault(parent, []).append(int(entry))
    return children


def end_descendants() -> None:
    """Kill everything below this process and reaps it; returns when nothing is left.

    This process must be a subreaper or the first of its namespace: then an orphan becomes its child, and having no
    child left means that nobody is left, however fast they fork.
    """
    while _has_children():
        for pid in descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        os.waitpid(-1, 0)


def end_orphans(known: Collection[int]) -> None:
    """Kill and reaps every child of this process but the known ones, and everything below it. This process must be a
    subreaper, as above."""
    while orphans := [pid for pid in _by_parent().get(os.getpid(), ()) if pid not in known]:
        for orphan in orphans:
            for pid in (*descendants(orphan), orphan):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(orphan, 0)


def _has_children() -> bool:
    """Return whether a child is left once those that have ended are reaped."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return False
    return True
