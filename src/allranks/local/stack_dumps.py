"""Read the stacks of running ranks from outside, with py-spy, which stops a process for some milliseconds only.

py-spy 0.4 looks into the namespaces of an instance, and needs neither the script's help nor the lock of its
interpreter.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from allranks.verdict.stacks import Frame, Stack

PATIENCE = 10.0
"""Seconds for one process."""

_ENGINE = "/allranks/local/"
_HELPERS = ("/torch/utils/data/_utils/worker.py", "/torch/distributed/run.py", "/multiprocessing/resource_tracker.py",
            "/torch/distributed/launcher/", "/accelerate/commands/")  # fmt: skip
"""Files of processes that are no ranks: workers of data loaders, and launchers."""


def program() -> str | None:
    """Return the path of py-spy; None if this machine has none."""
    own = Path(sys.executable).with_name("py-spy")
    return str(own) if own.exists() else shutil.which("py-spy")


def of_ranks(logs: Mapping[int, str], silent: Collection[int] = ()) -> list[Stack]:
    """Return the stacks of the Python processes of ranks; none without py-spy, or if it may not look.

    logs:   the log of each rank, which is where its processes write
    silent: ranks of which no thread has run when it was asked to
    """
    spy = program()
    stacks = [] if spy is None else [_stack(spy, pid, rank, silent) for pid, rank in processes_of(logs)]
    found = [
        stack
        for stack in stacks
        if stack is not None and not any(name in frame.file for frame in stack.frames for name in _HELPERS)
    ]
    return sorted(found, key=lambda stack: stack.number)


def processes_of(logs: Mapping[int, str]) -> Iterator[tuple[int, int]]:
    """Yield each process that writes to the log of a rank, with the rank."""
    files = {}
    for rank, log in logs.items():
        with contextlib.suppress(OSError):
            status = os.stat(log)
            files[status.st_dev, status.st_ino] = rank
    for name in filter(str.isdecimal, os.listdir("/proc")):
        for stream in (2, 1):
            # A process that has ended, or belongs to another user.
            with contextlib.suppress(OSError):
                status = os.stat(f"/proc/{name}/fd/{stream}")
                if (status.st_dev, status.st_ino) in files:
                    yield int(name), files[status.st_dev, status.st_ino]
                    break


def _stack(spy: str, pid: int, rank: int, silent: Collection[int]) -> Stack | None:
    """Return the stack of the main thread of a process, without the engine's part; None if it is not Python."""
    try:
        command = [spy, "dump", "--json", "--pid", str(pid)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        threads = json.loads(done.stdout)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    # Without the module threading, the main thread has no name.
    main = [each for each in threads if each["thread_name"] == "MainThread" or len(threads) == 1]
    frames = []
    for frame in main[0]["frames"] if main else ():
        if _ENGINE in frame["filename"]:
            break
        frames.append(Frame(frame["name"], frame["filename"], frame["line"]))
    stack = Stack(rank, tuple(frames), _worker(pid))
    # A thread that sleeps with the lock does not release it; of one that computes with it, only the others' silence
    # shows that.
    is_locked = bool(main) and main[0]["owns_gil"] and (not main[0]["active"] or stack.number in silent)
    return replace(stack, holds_gil=is_locked)


def _worker(pid: int) -> int | None:
    """Return the rank by the count of torchrun, which starts its workers with the variable RANK."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        lines = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        variables = dict(line.split(b"=", 1) for line in lines if b"=" in line)
        if b"TORCHELASTIC_RUN_ID" in variables:
            return int(variables[b"RANK"])
    return None
