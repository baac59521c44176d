"""The sampling schedule of a step: no sample in its first second, then frequent ones, then fewer."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from resource import struct_rusage

    from allranks.local.instances.sampler import Figures, Sampler

FIRST = 1.0
"""Seconds until the first sample, and between samples at first. A shorter step has none."""

LONGEST = 32.0
"""Maximum seconds between two samples."""

SAMPLES = 512
"""Number of samples after which the time between them doubles, then again after each half of it."""

RANKS = 48
"""Maximum number of ranks in an event, whose line must be shorter than PIPE_BUF."""

GPUS = "CUDA_VISIBLE_DEVICES"


class Sampling:
    """The samples of one step on one instance. Before the first one is due, it costs some microseconds.

    programs: those of the engine's `start` command
    write:    writes an event
    """

    def __init__(self, programs: Sequence[dict[str, Any]], write: Callable[..., None]) -> None:
        self._programs = programs
        self._write = write
        self._names: dict[int, str] = {}
        self._sampler: Sampler | None = None
        self._seconds = FIRST
        self._remaining = SAMPLES
        self._next = math.inf

    def begin(self, names: dict[int, str]) -> None:
        """Start the schedule. names: the names of the started programs, by process id. Forked ones are added later"""
        self._names = names
        self._next = time.monotonic() + FIRST

    @property
    def timeout(self) -> float:
        """Seconds until the next sample is due; 0 if it is."""
        return max(self._next - time.monotonic(), 0.0)

    def sample_if_due(self) -> None:
        """Write `usage` events if a sample is due. Raise BrokenPipeError if the engine has ended."""
        now = time.monotonic()
        if now < self._next:
            return
        self._remaining -= 1
        if not self._remaining:
            self._remaining = SAMPLES // 2
            self._seconds = min(2 * self._seconds, LONGEST)
        self._next = max(self._next + self._seconds, now)
        try:
            ranks = list(self._sample(now).items())
        except Exception as error:  # a failure to measure must not end the ranks
            self._next = math.inf
            self._write(event="usage_failed", reason=f"{type(error).__name__}: {error}", time=time.time())
            return
        moment = round(time.time(), 2)
        for start in range(0, len(ranks), RANKS):
            self._write(event="usage", ranks=dict(ranks[start : start + RANKS]), time=moment)

    def count_reaped(self, pid: int, usage: struct_rusage) -> None:
        """Count the CPU time of a process that the agent has waited for."""
        if self._sampler is not None:
            self._sampler.count_reaped(pid, cpu_seconds(usage))

    def close(self) -> None:
        if self._sampler is not None:
            self._sampler.close()

    def _sample(self, now: float) -> dict[str, Figures]:
        if self._sampler is None:
            from allranks.local.instances.sampler import Sampler  # only for a step that lasts so long

            names = self._programs[0]["environment"].get(GPUS, "") if self._programs else ""
            self._sampler = Sampler(self._names, [name.strip() for name in names.split(",") if name.strip()])
        return self._sampler.sample(now) or {}


def cpu_seconds(usage: struct_rusage) -> float:
    """Return the CPU time of a process that has ended and of the children that it waited for."""
    return round(usage.ru_utime + usage.ru_stime, 3)


def peak_memory(usage: struct_rusage) -> int:
    """Return the peak of resident memory of the largest of these processes, in bytes. It includes pages of files."""
    return usage.ru_maxrss << 10
