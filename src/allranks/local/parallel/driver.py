"""The first process of a parallel step on an instance: it starts the workers, and on instance 0 the hub."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from . import worker
from .hub import Hub

GONE = 3
"""The exit code of a worker that cannot reach the hub."""


def main(settings_file: str, entry: str, arguments: Sequence[str]) -> int:
    """Run this instance's part of the step, and return its exit code."""
    with open(settings_file, encoding="utf-8") as file:
        settings: dict[str, Any] = json.load(file)
    # A line of a worker must be in the log if its process is killed.
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    alive, end = os.pipe()
    rank = settings["rank"]
    hub = _fork(lambda: Hub(settings, alive).run(), end) if rank == 0 else None
    slots: dict[int, int] = {}

    def start(slot: int) -> None:
        slots[_fork(lambda: _work(settings, f"worker {slot} of instance {rank}", entry, arguments), end)] = slot

    for slot in range(settings["concurrency"] or _default_concurrency(settings["count"])):
        start(slot)
    while True:
        pid, status = os.wait()
        if pid == hub:
            return _exit_code(status)
        if pid not in slots:
            continue
        slot = slots.pop(pid)
        if _exit_code(status) not in (0, GONE):
            start(slot)  # it was killed, for example by its time-out; the hub knows which mini-batch it had
        elif not slots and hub is None:
            return 0


def _exit_code(status: int) -> int:
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _fork(run: Callable[[], int], end: int) -> int:
    """Run a function in a new process, and return the process id. end: the end of a pipe that only this process has"""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.close(end)
        code = run()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)


def _work(settings: dict[str, Any], name: str, entry: str, arguments: Sequence[str]) -> int:
    # This process may have them from a fork server. Those of a new process differ.
    numpy, torch = sys.modules.get("numpy.random"), sys.modules.get("torch")
    if numpy is not None:
        numpy.seed()
    if torch is not None:
        torch.default_generator.seed()
    connection = worker.connect(settings["socket"])
    return GONE if connection is None else worker.work(connection, settings, name, entry, arguments)


def _default_concurrency(instances: int) -> int:
    """Return Azure ML's default: one worker if the instance has GPUs, else one per core, of this instance's share."""
    if os.environ.get("CUDA_VISIBLE_DEVICES", "").strip() not in ("", "-1"):
        return 1
    return max(1, len(os.sched_getaffinity(0)) // instances)
