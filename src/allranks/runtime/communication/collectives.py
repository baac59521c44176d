"""Gather, reduce, average and broadcast values over the ranks. `Ranks` has these as methods."""

from __future__ import annotations

from typing import Any, SupportsFloat, TypeVar, overload

import torch
from torch import Tensor, distributed

from allranks.errors import InputError, Problem
from allranks.runtime.metrics.metrics import snapshot

T = TypeVar("T")

OPERATIONS = {
    "sum": distributed.ReduceOp.SUM,
    "mean": distributed.ReduceOp.SUM,  # gloo has no average
    "max": distributed.ReduceOp.MAX,
    "min": distributed.ReduceOp.MIN,
}
"""torch's operation for each name."""


@torch.no_grad()
def gather(tensor: Tensor) -> Tensor:
    """See `Ranks.gather`."""
    world_size = distributed.get_world_size()
    rows = tensor.detach().reshape(1) if tensor.dim() == 0 else tensor.detach()
    own_kind = (str(rows.dtype), tuple(rows.shape[1:]))
    described: list[tuple[int, Any]] = [(0, None)] * world_size
    distributed.all_gather_object(described, (len(rows), own_kind))
    for rank, (_, kind) in enumerate(described):
        if kind != described[0][1]:
            found = f"{_kind(kind)} on rank {rank}, and {_kind(described[0][1])} on rank 0"
            raise InputError(Problem("tensor to gather", found, "the same dtype and row shape on every rank"))
    lengths = [length for length, _ in described]
    # Sent as bytes, since a backend has collectives for some dtypes only, and padded, since gloo needs equal lengths.
    row_bytes = rows.element_size() * rows[:1].new_empty(rows.shape[1:]).numel()
    own = torch.zeros(max(lengths) * row_bytes, dtype=torch.uint8, device=rows.device)
    own[: len(rows) * row_bytes] = rows.contiguous().flatten().view(torch.uint8)
    parts = [torch.empty_like(own) for _ in lengths]
    distributed.all_gather(parts, own)
    content = torch.cat([part[: length * row_bytes] for part, length in zip(parts, lengths, strict=True)])
    return content.view(rows.dtype).reshape(sum(lengths), *rows.shape[1:])


@overload
def reduce(value: Tensor, operation: str = "sum") -> Tensor: ...
@overload
def reduce(value: float, operation: str = "sum") -> float: ...
@torch.no_grad()
def reduce(value: Tensor | float, operation: str = "sum") -> Tensor | float:
    """See `Ranks.reduce`."""
    if operation not in OPERATIONS:
        raise InputError(Problem("reduce, operation", repr(operation), f"one of {', '.join(OPERATIONS)}"))
    if not isinstance(value, Tensor):
        # On the CPU, so that a number does not wait for the GPU. 64 bits hold every Python float.
        whole = isinstance(value, int) and operation != "mean"
        result = reduce(torch.tensor(value, dtype=torch.int64 if whole else torch.float64), operation)
        number: float = result.item()
        return number
    total = value.detach().to(computed_in(value.dtype, operation), copy=True).contiguous()
    distributed.all_reduce(total, OPERATIONS[operation])
    if operation == "mean":
        total = total / distributed.get_world_size()
    keeps_dtype = value.is_floating_point() or value.is_complex() or operation in ("max", "min")
    return total.to(value.dtype) if keeps_dtype else total


def broadcast(value: T) -> T:
    """See `Ranks.broadcast`."""
    values = [value]
    distributed.broadcast_object_list(values, src=0)
    return values[0]


class RankMean:
    """The mean of a number over all ranks, which may still be being computed.

    `float(mean)` waits for it. `metrics.log` reads it later, so that the training does not wait.
    """

    def __init__(self, value: Tensor | float, device: torch.device) -> None:
        total = torch.as_tensor(value, device=device).detach()
        dtype = computed_in(total.dtype, "mean") if total.is_floating_point() else torch.float64
        self._total = total.to(dtype, copy=True)
        self._world_size = distributed.get_world_size()
        # NCCL computes in the order of the current stream while this process continues. gloo does so in a thread.
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


def computed_in(dtype: torch.dtype, operation: str) -> torch.dtype:
    """Return the dtype in which values are reduced: 16-bit floats would round, and small integers overflow."""
    if dtype in (torch.float16, torch.bfloat16):
        return torch.float32
    if dtype.is_floating_point or dtype.is_complex:
        return dtype
    return torch.uint8 if dtype == torch.bool and operation in ("max", "min") else torch.int64


def _kind(kind: tuple[str, tuple[int, ...]]) -> str:
    return f"{kind[0].removeprefix('torch.')} rows of shape {kind[1]}"
