"""The ranks of a training, as one of them sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, SupportsFloat, TypeVar, overload

import torch
from torch import Tensor, distributed
from torch.distributed import HashStore, Store  # type: ignore[attr-defined]

from allranks.errors import InputError, Problem
from allranks.runtime.metrics.metrics import Metrics, snapshot
from allranks.runtime.strategies.training import Strategy

T = TypeVar("T")

_OPERATIONS = {
    "sum": distributed.ReduceOp.SUM,
    "mean": distributed.ReduceOp.SUM,  # gloo has no average
    "max": distributed.ReduceOp.MAX,
    "min": distributed.ReduceOp.MIN,
}
"""torch's operation for each name."""


@dataclass(frozen=True)
class Ranks:
    """The rank of this process, and the objects that it trains with. torch's default process group is initialised, also
    if there is one rank only.

    rank, world_size: number of this rank, and number of all ranks
    local_rank, local_world_size: the same within the instance
    instance_rank, instance_count: number of the instance, and number of instances
    launcher: the launcher that started this process, as the contract names it
    device:   the device of this rank
    strategy: how the model is distributed over the ranks
    metrics:  logs to MLflow and to the live view
    store:    the key-value store that connects the ranks
    full_instance_count: number of instances for which an elastic job was configured; None: instance_count
    """

    rank: int
    local_rank: int
    world_size: int
    local_world_size: int
    instance_rank: int
    instance_count: int
    launcher: str
    device: torch.device
    strategy: Strategy
    metrics: Metrics
    store: Store = field(default_factory=HashStore, repr=False)
    full_instance_count: int | None = None

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0."""
        return self.rank == 0

    @property
    def full_world_size(self) -> int:
        """The number of ranks for which the job was configured. An elastic job on fewer instances has fewer ranks.
        Compute the global batch from it."""
        return (self.full_instance_count or self.instance_count) * self.local_world_size

    def barrier(self) -> None:
        """Wait until every rank has called this."""
        self.any_rank(False)

    def any_rank(self, flag: bool) -> bool:
        """Return True on every rank if the flag is True on at least one. Every rank must call it."""
        return bool(self.reduce(int(flag), "max"))

    @torch.no_grad()
    def gather(self, tensor: Tensor) -> Tensor:
        """Return the concatenation of every rank's tensor along the first dimension, in the order of the ranks. A
        collective.

        tensor: on any device, [n, ...]; n may differ between ranks and be 0. A scalar counts as [1].

        Every rank gets the result, on the device of its own tensor: [sum of n, ...], without gradients. Raise
                                                                     InputError if dtypes or the other dimensions
                                                                     differ.

            scores = ranks.gather(model(images).softmax(dim=1))
        """
        rows = tensor.detach().reshape(1) if tensor.dim() == 0 else tensor.detach()
        parts: list[Any] = [None] * self.world_size
        # A copy, because pickle would send the whole storage of a view.
        distributed.all_gather_object(parts, rows.to("cpu", copy=True))
        for rank, part in enumerate(parts):
            if (part.dtype, part.shape[1:]) != (parts[0].dtype, parts[0].shape[1:]):
                found = f"{_rows(part)} on rank {rank}, and {_rows(parts[0])} on rank 0"
                raise InputError(Problem("tensor to gather", found, "the same dtype and row shape on every rank"))
        return torch.cat(parts).to(rows.device)

    @overload
    def reduce(self, value: Tensor, operation: str = "sum") -> Tensor: ...
    @overload
    def reduce(self, value: float, operation: str = "sum") -> float: ...
    @torch.no_grad()
    def reduce(self, value: Tensor | float, operation: str = "sum") -> Tensor | float:
        """Return the sum, mean, maximum or minimum over the ranks, elementwise. A collective.

        value:     a number, or a tensor of the same shape on every rank, which does not change
        operation: "sum", "mean", "max" or "min"

        Every rank gets the result: a number for a number, and a tensor on the same device, without gradients, for a
        tensor. It has the tensor's dtype, except that sums of integers and booleans are int64, and their means float32.
        Raise InputError for another operation. To log a mean over the ranks without waiting for it, use `mean`.
        """
        if operation not in _OPERATIONS:
            raise InputError(Problem("reduce, operation", repr(operation), f"one of {', '.join(_OPERATIONS)}"))
        if not isinstance(value, Tensor):
            # On the CPU, so that a number does not wait for the GPU. 64 bits hold every Python float.
            whole = isinstance(value, int) and operation != "mean"
            result = self.reduce(torch.tensor(value, dtype=torch.int64 if whole else torch.float64), operation)
            number: float = result.item()
            return number
        total = value.detach().to(_computed_in(value.dtype, operation), copy=True).contiguous()
        distributed.all_reduce(total, _OPERATIONS[operation])
        if operation == "mean":
            total = total / self.world_size
        keeps_dtype = value.is_floating_point() or value.is_complex() or operation in ("max", "min")
        return total.to(value.dtype) if keeps_dtype else total

    def broadcast(self, value: T) -> T:
        """Return rank 0's value on every rank. A collective.

        value: any object that pickle can serialise; the values of other ranks are ignored

            files = ranks.broadcast(sorted(folder.iterdir()) if ranks.is_main else [])
        """
        values = [value]
        distributed.broadcast_object_list(values, src=0)
        return values[0]

    def mean(self, value: Tensor | float) -> RankMean:
        """Return the mean of a number over all ranks, to be logged. A collective.

        value: this rank's number, or a tensor of one element, on its device

        It does not wait for the result: `float(mean)` does, and `metrics.log` reads it later.

            if step % 10 == 0:
                ranks.metrics.log({"train_loss": ranks.mean(loss)}, step=step)
        """
        return RankMean(value, self.device, self.world_size)


class RankMean:
    """The mean of a number over all ranks, which may still be being computed.

    `float(mean)` waits for it. `metrics.log` reads it later, so that the training does not wait.
    """

    def __init__(self, value: Tensor | float, device: torch.device, world_size: int) -> None:
        own = value.detach() if isinstance(value, Tensor) else torch.tensor(value, dtype=torch.float64)
        dtype = _computed_in(own.dtype, "mean") if own.is_floating_point() else torch.float64
        self._total = own.to(device, dtype, copy=True)
        self._world_size = world_size
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


def _computed_in(dtype: torch.dtype, operation: str) -> torch.dtype:
    """Return the dtype in which values are reduced: 16-bit floats would round, and small integers overflow."""
    if dtype in (torch.float16, torch.bfloat16):
        return torch.float32
    if dtype.is_floating_point or dtype.is_complex:
        return dtype
    return torch.uint8 if dtype == torch.bool and operation in ("max", "min") else torch.int64


def _rows(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} rows of shape {tuple(tensor.shape[1:])}"
