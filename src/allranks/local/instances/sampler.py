"""Sample the CPU time, memory and GPUs that the ranks of an instance use. The use of GPUs is read from NVIDIA's
management library (NVML), which is part of the driver."""

from __future__ import annotations

import contextlib
import ctypes
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

from allranks.local.instances.processes import RANK, TICKS_PER_SECOND, Process, ProcessTree

SHARE, CREDIT = 0.003, 0.05
"""Share of a core for sampling, and seconds of CPU time at once. If they are used up, samples are left out."""

EXCESS_SHARE, EXCESS_CREDIT = 0.001, 0.02
"""Share of that time for the memory that forked processes share with each other."""

GPU_SHARE, GPU_CREDIT = 0.001, 0.01
"""Share of that time for GPUs. Until the next reading, the last one is reported."""

Figures = Sequence[float | None]
"""Of a rank: CPU seconds, bytes of memory, percent of use of its GPUs, bytes of GPU memory. The last two are missing if
there are no GPUs."""


class Sampler:
    """Sample the ranks of a step on one instance.

    programs: the programs that this process has started, by process id
    gpus:     the names of the instance's GPUs in CUDA_VISIBLE_DEVICES
    """

    def __init__(self, programs: Mapping[int, str], gpus: Sequence[str] = ()) -> None:
        self._programs = programs
        self._tree = ProcessTree(programs)
        self._reaped: dict[str, float] = defaultdict(float)
        self._cpu: dict[str, float] = {}
        self._allowance = Allowance(SHARE, CREDIT)
        self._excess_allowance = Allowance(EXCESS_SHARE, EXCESS_CREDIT)
        self._gpu_allowance = Allowance(GPU_SHARE, GPU_CREDIT)
        self._nvml = _nvml() if gpus else None
        self._devices = self._nvml.devices(gpus) if self._nvml else []
        self._states: list[tuple[int | None, int | None]] = []

    def sample(self, now: float) -> dict[str, Figures] | None:
        """Return the figures of every rank that has processes; None if the last samples took too much CPU time.

        now: seconds of a monotonic clock
        """
        if not self._allowance.is_left(now):
            return None
        since = time.thread_time()
        self._tree.refresh()
        processes = self._tree.processes.values()
        self._measure_forked(processes, now)
        cpu: dict[str, float] = defaultdict(float)
        memory: dict[str, int] = defaultdict(int)
        for process in processes:
            cpu[process.rank] += process.stat.ticks / TICKS_PER_SECOND
            memory[process.rank] += max(process.memory - (process.excess or 0), 0)
        for rank in cpu:
            # The time of a child that was not waited for is lost.
            self._cpu[rank] = max(self._cpu.get(rank, 0.0), round(cpu[rank] + self._reaped[rank], 2))
        gpus = self._gpus(sorted(cpu, key=_number), now)
        figures: dict[str, Figures] = {rank: (self._cpu[rank], memory[rank], *gpus.get(rank, ())) for rank in cpu}
        self._allowance.use(since)
        return figures

    def count_reaped(self, pid: int, cpu: float) -> None:
        """Count the CPU seconds of a process that this process has waited for: a program, or an orphan of one."""
        process = self._tree.processes.get(pid)
        rank = process.rank if process is not None else self._programs.get(pid)
        if rank is not None:
            self._reaped[rank] += cpu

    def close(self) -> None:
        self._tree.close()

    def _measure_forked(self, processes: Collection[Process], now: float) -> None:
        """Measure what forked processes, such as data loader workers, share with each other, as often as the allowance
        permits. A process without a measurement is assumed to share as much as the last measured one."""
        families: dict[tuple[bytes, bytes], list[Process]] = defaultdict(list)
        for process in processes:
            families[process.stat.image].append(process)
        forked = []
        for image, family in families.items():
            if len(family) > 1 and image[1] != b"0":  # else the kernel does not report it
                forked.append(family)
            else:
                family[0].excess = None
        for process in sorted((process for family in forked for process in family), key=lambda each: each.measured):
            if not self._excess_allowance.is_left(now):
                break
            since = time.thread_time()
            process.measure_excess(now)
            self._excess_allowance.use(since)
        for family in forked:
            last = max(family, key=lambda each: each.measured)
            for process in family:
                if process.excess is None and last.excess is not None:
                    process.excess = min(last.excess, process.memory)

    def _gpus(self, ranks: Sequence[str], now: float) -> dict[str, Figures]:
        """Return the use of its GPUs, and the memory on them, by rank."""
        if self._nvml is None or not self._devices:
            return {}
        if self._gpu_allowance.is_left(now):
            since = time.thread_time()
            self._states = [self._nvml.read(device) for device in self._devices]
            self._gpu_allowance.use(since)
        ranks = [rank for rank in ranks if rank.startswith(RANK)]
        # The driver reports the process ids of the machine, not of the instance. So each rank has the GPU of its
        # number, or, as the only one, all.
        if len(ranks) == len(self._states):
            return dict(zip(ranks, self._states, strict=True))
        if len(ranks) != 1:
            return {}
        uses = [use for use, _ in self._states if use is not None]
        memory = [used for _, used in self._states if used is not None]
        return {ranks[0]: (round(sum(uses) / len(uses)) if uses else None, sum(memory) if memory else None)}


def _number(rank: str) -> tuple[int, str]:
    number = rank.removeprefix(RANK)
    return (int(number), "") if number.isdecimal() else (-1, rank)


@cache
def _nvml() -> Nvml | None:
    """Return the library of the driver; None if it is not installed."""
    with contextlib.suppress(OSError):
        return Nvml()
    return None


class Allowance:
    """CPU budget for periodic work: a share of one core, and an initial credit.

    share:  the share of a core, between 0 and 1
    credit: seconds of CPU time that may be used at once. Unused time is saved up to this amount.
    """

    def __init__(self, share: float, credit: float) -> None:
        self._share = share
        self._credit = credit
        self._left = credit
        self._updated: float | None = None

    def is_left(self, now: float) -> bool:
        """Return whether the work may be done. now: seconds of a monotonic clock"""
        if self._updated is not None:
            self._left = min(self._left + (now - self._updated) * self._share, self._credit)
        self._updated = now
        return self._left > 0

    def use(self, since: float) -> None:
        """Subtract the CPU time of this thread since then, a value of `time.thread_time`."""
        self._left -= time.thread_time() - since


LIBRARY = "libnvidia-ml.so.1"


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class Nvml:
    """The loaded library."""

    def __init__(self, library: str = LIBRARY) -> None:
        """Load the library. Raise OSError if it is not installed or finds no driver."""
        self._library = ctypes.CDLL(library)
        if not self._call("nvmlInit_v2"):
            raise OSError(f"{library} finds no driver")

    def devices(self, names: Sequence[str]) -> list[ctypes.c_void_p]:
        """Return the handles of GPUs by their names in CUDA_VISIBLE_DEVICES: a number, or a UUID. Unknown names are
        omitted."""
        handles = []
        for name in names:
            handle = ctypes.c_void_p()
            if name.isdecimal():
                found = self._call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(int(name)), ctypes.byref(handle))
            else:
                found = self._call("nvmlDeviceGetHandleByUUID", name.encode(), ctypes.byref(handle))
            if found:
                handles.append(handle)
        return handles

    def read(self, device: ctypes.c_void_p) -> tuple[int | None, int | None]:
        """Return the percent of the last moments in which a GPU was busy, and the bytes in use on it; None for what the
        driver does not report."""
        use, memory = _Utilization(), _Memory()
        return (
            use.gpu if self._call("nvmlDeviceGetUtilizationRates", device, ctypes.byref(use)) else None,
            memory.used if self._call("nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory)) else None,
        )

    def _call(self, function: str, *arguments: Any) -> bool:
        """Call a function. Return whether it succeeded."""
        return bool(getattr(self._library, function)(*arguments) == 0)
