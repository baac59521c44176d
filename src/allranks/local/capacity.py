"""Check that this machine can hold the processes of each step, before any of them starts."""

import contextlib
import os
import resource
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from allranks.errors import Problem
from allranks.hardware import sizes
from allranks.plan.graph import Plan, Step
from allranks.plan.walk import steps

_GROUPS = Path("/sys/fs/cgroup")


@cache
def machine_memory() -> int:
    """Return the memory available to processes of this machine or container, in bytes."""
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *control_group_limits("memory.max")])


def control_group_limits(name: str, own: Path = Path("/proc/self/cgroup"), root: Path = _GROUPS) -> list[int]:
    """Return a limit, such as memory.max, of this process's control group (version 2) and of those around it.

    own:  the file that names the group
    root: where the control groups are mounted
    """
    limits: list[int] = []
    try:
        text = own.read_text(encoding="utf-8")
    except OSError:
        return limits
    path = next((line.removeprefix("0::/") for line in text.splitlines() if line.startswith("0::/")), "")
    # In a container, the path may be that of the host, where the mounted group is the container's own.
    for folder in (root / path, *(root / path).parents):
        if folder.is_relative_to(root):
            with contextlib.suppress(OSError, ValueError):  # no file, or "max"
                limits.append(int((folder / name).read_text(encoding="utf-8")))
    return limits


def memory_kills() -> int:
    """Return how many processes the kernel has killed for lack of memory, in this container or on this machine."""
    for file in (_GROUPS / "memory.events", Path("/proc/vmstat")):
        with contextlib.suppress(OSError):
            for line in file.read_text(encoding="utf-8").splitlines():
                name, _, value = line.partition(" ")
                if name == "oom_kill":
                    return int(value)
    return 0


def size_memory(name: str) -> int | None:
    """Return the memory of an instance of an Azure size in bytes, or None if unknown."""
    size = sizes.known(name) if name else None
    return size.host_memory_gib << 30 if size is not None and size.host_memory_gib else None


SMALLEST_RANK = 4 << 20
"""Minimum bytes of a rank: those of its shell."""

SMALLEST_INSTANCE = 12 << 20
"""Bytes of an instance's agent, a Python process."""

TORCH_RANK = 250 << 20
"""Bytes of a rank that has imported torch for the CPU and initialized a process group."""

MANY_RANKS_PER_CORE = 16
"""Ranks per core above which they often wait longer for each other than the time-outs of their launchers allow."""

RESERVED_PROCESSES = 64
"""Processes reserved for this user's other programs."""


def problems(plan: Plan) -> Iterator[Problem]:
    """Yield a problem for each step with more processes than this machine can start."""
    memory, most = machine_memory(), most_processes()
    for path, step in steps(plan.graph):
        instances, ranks, needed = step.instance_count, step.ranks, _smallest(step)
        if needed > memory:
            found = f"{instances:,} instances with {ranks:,} ranks; without any library they need {_gb(needed)}"
            yield _problem(path, step, found, f"at most {_gb(memory)}, the memory of this machine")
        elif instances + ranks > most - RESERVED_PROCESSES:
            found = f"{instances:,} instances with {ranks:,} ranks, each of them a process"
            yield _problem(path, step, found, f"fewer than {most:,}, the number of processes that this user may have")


def warnings(plan: Plan) -> Iterator[Problem]:
    """Yield a warning for each step whose ranks will be slow on this machine, or may not fit into its memory."""
    cores, memory = os.cpu_count() or 1, machine_memory()
    for path, step in steps(plan.graph):
        ranks = step.ranks
        if _smallest(step) > memory:
            continue  # a problem, or a count that no cluster has
        if ranks > MANY_RANKS_PER_CORE * cores:
            found = f"{ranks:,} ranks on {cores} cores: {ranks // cores:,} share each core"
            yield _problem(path, step, found, f"at most {MANY_RANKS_PER_CORE} on each, or time-outs may be too short")
        if ranks > 1 and ranks * TORCH_RANK > memory:
            found = f"{ranks:,} ranks need {_gb(ranks * TORCH_RANK)} if they import torch"
            yield _problem(path, step, found, f"at most {_gb(memory)}, the memory of this machine")


def most_processes() -> int:
    """Return the number of processes that this user may have on this machine or in its container."""
    kernel = int(Path("/proc/sys/kernel/pid_max").read_text(encoding="utf-8"))
    soft, _ = resource.getrlimit(resource.RLIMIT_NPROC)
    # The limit does not apply to root.
    own = kernel if soft == resource.RLIM_INFINITY or os.geteuid() == 0 else soft
    return min(kernel, own, *control_group_limits("pids.max"))


def _smallest(step: Step) -> int:
    """Return the minimum memory of a step, in bytes."""
    return step.instance_count * SMALLEST_INSTANCE + step.ranks * SMALLEST_RANK


def _problem(path: str, step: Step, found: str, expected: str) -> Problem:
    fix = "try the pipeline here with fewer: the ranks of a smaller layout run the same code"
    where = f"step {path}, key resources.instance_count{step.at}"
    return Problem(where, found, expected, fix, code="too-many-ranks")


def _gb(size: int) -> str:
    return f"{size / (1 << 30):,.1f} GB"
