"""How much memory this machine and an instance of an Azure size have."""

from __future__ import annotations

import contextlib
import os
from functools import cache
from pathlib import Path

from allranks.hardware import sizes

_GROUPS = Path("/sys/fs/cgroup")


@cache
def machine_memory() -> int:
    """Return the bytes of memory that processes of this machine, or of the container that this is, may use."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with contextlib.suppress(OSError):
        limits += control_group_limits(Path("/proc/self/cgroup").read_text(encoding="utf-8"), _GROUPS)
    return min(limits)


def control_group_limits(text: str, root: Path) -> list[int]:
    """Return the memory limits of the control groups of a process, in bytes.

    text: its /proc/PID/cgroup
    root: where the control groups are mounted
    """
    limits = []
    for line in text.splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":  # version 2
            base, file = root, "memory.max"
        elif "memory" in controllers.split(","):
            base, file = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        group = base / path.lstrip("/")
        # In a container, the path may be that of the host, where the mounted group is the container's own.
        for folder in (group, *group.parents):
            if not folder.is_relative_to(base):
                break
            with contextlib.suppress(OSError, ValueError):  # no file, or "max"
                limits.append(int((folder / file).read_text(encoding="utf-8")))
    return limits


def size_memory(name: str) -> int | None:
    """Return the bytes of memory of an instance of an Azure size; None if it is not known."""
    size = sizes.known(name) if name else None
    return size.host_memory_gib << 30 if size is not None and size.host_memory_gib else None
