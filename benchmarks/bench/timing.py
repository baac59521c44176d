"""Times of processes, taken in turn, so that whatever else the machine does falls on all of them alike."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence


def environment(**more: str) -> dict[str, str]:
    """This process's environment without what would change how Python starts, such as PYTHONDONTWRITEBYTECODE."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | more


def run(command: Sequence[str], **more: str) -> str:
    """What a command prints. more: variables beside `environment`. Raises RuntimeError with the end of what it said
    where it fails."""
    done = subprocess.run(command, env=environment(**more), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def seconds(command: Sequence[str], **more: str) -> float:
    """The wall time of a command, from its start until it has ended."""
    started = time.perf_counter()
    run(command, **more)
    return time.perf_counter() - started


def cpu_seconds(command: Sequence[str], **more: str) -> float:
    """The CPU time of a command and of what it starts, user and system: it hardly grows on a busy machine."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(command, **more)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def medians(times: int, *measurements: Callable[[], float]) -> list[float]:
    """The median of each measurement, taken `times` times in turn after a first round that does not count."""
    rounds = [[measure() for measure in measurements] for _ in range(times + 1)][1:]
    return [statistics.median(values) for values in zip(*rounds, strict=True)]
