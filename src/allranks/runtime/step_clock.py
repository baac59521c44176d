"""Clocks that measure the time between two points of a training without waiting for its device."""

from __future__ import annotations

import time
from typing import Any, Protocol

import torch


class Clock(Protocol):
    """A clock whose marks are read later."""

    def mark(self) -> Any:
        """Mark this point of the training."""

    def seconds(self, start: Any, end: Any) -> float:
        """Return the seconds between two marks. Wait until the device has reached the second one."""


class CpuClock:
    """The clock of this process."""

    def mark(self) -> float:
        """See `Clock`."""
        return time.perf_counter()

    def seconds(self, start: float, end: float) -> float:
        """See `Clock`."""
        return end - start


class CudaClock:
    """The clock of a CUDA device, in the order of its current stream. This process may be some steps ahead of it."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def mark(self) -> Any:
        """See `Clock`."""
        event: Any = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record(torch.cuda.current_stream(self._device))
        return event

    def seconds(self, start: Any, end: Any) -> float:
        """See `Clock`."""
        end.synchronize()
        milliseconds: float = start.elapsed_time(end)
        return milliseconds / 1000


def clock(device: torch.device) -> Clock:
    """Return the clock of a device."""
    return CudaClock(device) if device.type == "cuda" else CpuClock()
