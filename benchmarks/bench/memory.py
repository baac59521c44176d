"""Measure the memory of a process, and the size of its output and its time while reading the output."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.timing import environment


@dataclass(frozen=True)
class Written:
    """The cost of writing a command's output.

    size:      bytes of the output
    seconds:   wall time of the command from start to end
    megabytes: peak resident memory of its process, in 10^6 bytes
    """

    size: int
    seconds: float
    megabytes: float


def written(command: Sequence[str]) -> Written:
    """Run a command and measure its output. Raise RuntimeError if it fails.

    The memory is VmHWM, read after each piece of output and at its end. Unlike ru_maxrss, it does not start at the
    memory of the process that started the command.
    """
    started = time.perf_counter()
    size, highest = 0, 0.0
    with subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        output = process.stdout.fileno()
        while piece := os.read(output, 1 << 16):
            size += len(piece)
            highest = max(highest, peak(process.pid))
    if process.returncode != 0:
        raise RuntimeError(f"{list(command)} ended with {process.returncode}")
    return Written(size, time.perf_counter() - started, highest)


def peak(process: int | str = "self") -> float:
    """Return the peak memory of a process so far, in 10^6 bytes; 0 if it has ended."""
    return _status(process, "VmHWM:")


def current(process: int | str = "self") -> float:
    """Return the resident memory of a process, in 10^6 bytes; 0 if it has ended."""
    return _status(process, "VmRSS:")


def reset_peak() -> None:
    """Let the peak memory of this process begin anew."""
    Path("/proc/self/clear_refs").write_text("5")


def _status(process: int | str, key: str) -> float:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0
