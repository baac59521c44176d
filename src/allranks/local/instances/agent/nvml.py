"""Read the use of GPUs from NVIDIA's management library (NVML), which is part of the driver."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

LIBRARY = "libnvidia-ml.so.1"

_INSUFFICIENT_SIZE = 7
_NOT_AVAILABLE = (1 << 64) - 1
_PROCESSES = 64


class _Utilization(ctypes.Structure):
    _fields_ = (("gpu", ctypes.c_uint), ("memory", ctypes.c_uint))


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


class _ProcessInfo(ctypes.Structure):
    _fields_ = (
        ("pid", ctypes.c_uint),
        ("memory", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


@dataclass(frozen=True)
class GpuState:
    """The state of a GPU. None: the driver does not tell.

    use:       percent of the last moments in which the GPU was busy
    memory:    bytes in use
    processes: bytes by id of the process that uses them. The ids may be of another process namespace.
    """

    use: int | None
    memory: int | None
    processes: dict[int, int] = field(default_factory=dict)


class Nvml:
    """The loaded library."""

    def __init__(self, library: str = LIBRARY) -> None:
        """Load the library. Raise OSError if this machine has none, or it finds no driver."""
        self._library = ctypes.CDLL(library)
        if not self._call("nvmlInit_v2"):
            raise OSError(f"{library} finds no driver")

    def devices(self, names: Sequence[str]) -> list[ctypes.c_void_p]:
        """Return the handles of GPUs by their names in CUDA_VISIBLE_DEVICES: a number, or a UUID. Names that the
        library does not know are left out."""
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

    def read(self, device: ctypes.c_void_p) -> GpuState:
        """Return the current state of a GPU."""
        use, memory = _Utilization(), _Memory()
        return GpuState(
            use.gpu if self._call("nvmlDeviceGetUtilizationRates", device, ctypes.byref(use)) else None,
            memory.used if self._call("nvmlDeviceGetMemoryInfo", device, ctypes.byref(memory)) else None,
            self._processes(device),
        )

    def _processes(self, device: ctypes.c_void_p) -> dict[int, int]:
        size = _PROCESSES
        while size <= 16 * _PROCESSES:
            count, infos = ctypes.c_uint(size), (_ProcessInfo * size)()
            code = self._code("nvmlDeviceGetComputeRunningProcesses_v3", device, ctypes.byref(count), infos)
            if code == 0:
                return {info.pid: info.memory for info in infos[: count.value] if info.memory != _NOT_AVAILABLE}
            if code != _INSUFFICIENT_SIZE:
                break
            size *= 4
        return {}

    def _call(self, function: str, *arguments: Any) -> bool:
        """Call a function. Return whether it succeeded."""
        return self._code(function, *arguments) == 0

    def _code(self, function: str, *arguments: Any) -> int:
        """Call a function. Return its error code; -1 if this version of the library lacks the function."""
        try:
            return int(getattr(self._library, function)(*arguments))
        except AttributeError:
            return -1
