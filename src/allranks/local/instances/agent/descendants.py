"""Find the descendants of this process in /proc, and kill them."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Collection


def descendants(root: int) -> list[int]:
    """Return the ids of the descendants of `root`, its children first."""
    children = _by_parent()
    pids: list[int] = []
    level = [root]
    while level:
        level = [child for parent in level for child in children.get(parent, ())]
        pids += level
    return pids


def _by_parent() -> dict[int, list[int]]:
    """Return the children of every process on this machine, by the id of their parent."""
    children: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as file:
                    # The name in parentheses may itself contain spaces and parentheses.
                    parent = int(file.read().rpartition(b")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue  # it ended meanwhile
            children.setdefault(parent, []).append(int(entry))
    return children


def end_descendants() -> None:
    """Kill and reap all descendants of this process. Return when none is left.

    This process must be a subreaper or the first process of its PID namespace. An orphan then becomes its child, so no
    descendant is left when no child is left, however fast they fork.
    """
    while _has_children():
        for pid in descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        os.waitpid(-1, 0)


def end_orphans(spared: Collection[int]) -> None:
    """Kill and reap the children of this process that are not in `spared`, and their descendants. This process must be
    a subreaper."""
    while orphans := [pid for pid in _by_parent().get(os.getpid(), ()) if pid not in spared]:
        for orphan in orphans:
            for pid in (*descendants(orphan), orphan):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(orphan, 0)


def _has_children() -> bool:
    """Reap the children that have ended. Return whether a child is left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except ChildProcessError:
        return False
    return True
