"""Measure the times of processes in turn, so that other load on the machine affects all of them equally."""

import os
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence


def environment(**more: str) -> dict[str, str]:
    """Return this process's environment without variables that change how Python starts, such as
    PYTHONDONTWRITEBYTECODE.

    more: variables to add
    """
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | more


def run(command: Sequence[str], **more: str) -> str:
    """Run a command, and return what it prints. Raise RuntimeError with the end of its output if it fails.

    more: variables in addition to `environment`
    """
    completed = subprocess.run(command, env=environment(**more), capture_output=True, text=True, check=False)
    if completed.returncode != 0:
        output = completed.stdout + completed.stderr
        raise RuntimeError(f"{command} ended with {completed.returncode}:\n{output[-2000:]}")
    return completed.stdout


def seconds(command: Sequence[str], **more: str) -> float:
    """Return the wall time of a command from start to end."""
    started = time.perf_counter()
    run(command, **more)
    return time.perf_counter() - started


def cpu_seconds(command: Sequence[str], **more: str) -> float:
    """Return the user and system CPU time of a command and its child processes. A busy machine hardly increases it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    run(command, **more)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def medians(times: int, *measurements: Callable[[], float]) -> list[float]:
    """Return the median of each measurement. The measurements run `times` times in turn, after one warm-up round."""
    rounds = [[measure() for measure in measurements] for _ in range(times + 1)][1:]
    return [statistics.median(values) for values in zip(*rounds, strict=True)]
