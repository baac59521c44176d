"""A rank's part of a tensor that the ranks hold together."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor, distributed

_SPLIT_BYTES = 1 << 16
"""Size from which the copies of a tensor are saved in parts, one by each rank that has a copy."""


@dataclass(frozen=True)
class TensorShard:
    """A region of a tensor, as this rank has it.

    local:   the values of the region
    shape:   shape of the whole tensor
    offsets: where the region begins, in each dimension; one number for a range of the flattened tensor
    copies:  number of ranks that have the same region
    copy:    number of this rank among them
    """

    local: Tensor
    shape: tuple[int, ...]
    offsets: tuple[int, ...]
    copies: int = 1
    copy: int = 0

    def own_part(self, number: int) -> tuple[tuple[int, ...], Tensor] | None:
        """Return the offsets and the values that this rank saves, None if other ranks save all of them.

        number: number of the tensor in the state. It distributes small tensors over the ranks.
        """
        if not self.local.numel():
            return (self.offsets, self.local) if not math.prod(self.shape) and self.copy == 0 else None
        if self.copies == 1:
            return self.offsets, self.local
        rows = self.local.shape[0] if self.local.dim() else 1
        if rows < self.copies or self.local.nbytes < _SPLIT_BYTES:
            return (self.offsets, self.local) if self.copy == number % self.copies else None
        low, high = self.copy * rows // self.copies, (self.copy + 1) * rows // self.copies
        return (self.offsets[0] + low, *self.offsets[1:]), self.local[low:high]


def replicated(tensor: Tensor) -> TensorShard:
    """Return the shard of a tensor with equal values on every rank."""
    return TensorShard(
        tensor.detach(),
        tuple(tensor.shape),
        (0,) * tensor.dim(),
        copies=distributed.get_world_size(),
        copy=distributed.get_rank(),
    )


def flat_range(values: Tensor, shape: Sequence[int], start: int) -> TensorShard:
    """Return the shard of a range of a flattened tensor.

    values: the range, with one dimension
    shape:  shape of the whole tensor
    start:  where the range begins
    """
    return TensorShard(values.detach(), tuple(shape), (start,))


def is_dtensor(value: object) -> bool:
    """Return whether a value is a DTensor, without the slow import of the class."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(value, module.DTensor)


def of_dtensor(tensor: Any) -> TensorShard:
    """Return this rank's shard of a DTensor."""
    (chunk,) = tensor.__create_chunk_list__()  # the protocol of torch.distributed.checkpoint
    coordinates = tensor.device_mesh.get_coordinate()
    copies, copy = 1, 0
    for dimension, placement in enumerate(tensor.placements):
        if placement.is_replicate():
            size = tensor.device_mesh.size(dimension)
            copies, copy = copies * size, copy * size + coordinates[dimension]
    return TensorShard(tensor.to_local().detach(), tuple(tensor.shape), tuple(chunk.offsets), copies, copy)
