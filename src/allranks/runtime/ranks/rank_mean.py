"""The mean of a number over the ranks."""

from __future__ import annotations

from typing import SupportsFloat

import torch
from torch import Tensor, distributed

from allranks.runtime.communication.collectives import computed_in
from allranks.runtime.metrics.logged_values import snapshot


class RankMean:
    """The mean of a number over all ranks, which may still be being computed.

    `float(mean)` waits for it. `metrics.log` reads it later, so that the training does not wait.
    """

    def __init__(self, value: Tensor | float, device: torch.device) -> None:
        total = torch.as_tensor(value, device=device).detach()
        dtype = computed_in(total.dtype, "mean") if total.is_floating_point() else torch.float64
        self._total = total.to(dtype, copy=True)
        self._world_size = distributed.get_world_size()
        # NCCL computes in the order of the current stream while this process goes on. gloo does so in a thread.
        on_cpu = self._total.device.type == "cpu"
        self._work = distributed.all_reduce(self._total, async_op=on_cpu) if self._world_size > 1 else None

    def __float__(self) -> float:
        if self._work is not None:
            self._work.wait()
        return float(self._total) / self._world_size

    def __repr__(self) -> str:
        return f"RankMean({float(self)})"

    def __format__(self, specification: str) -> str:
        return format(float(self), specification)

    def item(self) -> float:
        """Return the mean, as a tensor's `item` does."""
        return float(self)

    def snapshot(self) -> SupportsFloat:
        """Return an object to read this mean in another thread."""
        return self if self._total.device.type == "cpu" else snapshot(self._total / self._world_size)
