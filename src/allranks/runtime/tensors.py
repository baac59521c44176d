"""A rank's part of a tensor that the ranks hold together, and a tensor in a checkpoint, of which each rank reads the
region that it needs."""

from __future__ import annotations

import math
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import torch
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
    """Return whether a value is a DTensor.

    The class is not imported for this, which takes long: a DTensor exists only if it has been imported.
    """
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


class SavedTensor:
    """A tensor in a checkpoint, in one or more pieces.

    shape:  shape of the tensor
    pieces: offsets and values of the pieces, which are read from the file when they are copied. With one offset, a
            piece is a range of the flattened tensor.
    """

    def __init__(self, shape: Sequence[int], dtype: torch.dtype, pieces: Sequence[tuple[tuple[int, ...], Tensor]]):
        self.shape = torch.Size(shape)
        self.dtype = dtype
        self._pieces = pieces
        self._flat = any(values.dim() != len(self.shape) for _, values in pieces)

    @classmethod
    def whole(cls, tensor: Tensor) -> SavedTensor:
        """Return the saved tensor of one piece."""
        return cls(tensor.shape, tensor.dtype, [((0,) * tensor.dim(), tensor)])

    def full(self) -> Tensor:
        """Return the whole tensor, in memory of its own. Raise ValueError if a piece is missing."""
        if self._flat:
            return self._copy((0,), (self.shape.numel(),)).reshape(self.shape)
        return self._copy((0,) * len(self.shape), self.shape)

    def region(self, offsets: Sequence[int], sizes: Sequence[int]) -> Tensor:
        """Return a region of the tensor, in memory of its own. Raise ValueError if a piece is missing."""
        if not self._flat:
            return self._copy(offsets, sizes)
        whole = self.full()
        return whole[tuple(slice(low, low + size) for low, size in zip(offsets, sizes, strict=True))].clone()

    def flat_range(self, start: int, size: int) -> Tensor:
        """Return a range of the flattened tensor, in memory of its own. Raise ValueError if a piece is missing."""
        if self._flat:
            return self._copy((start,), (size,))
        return self.full().flatten()[start : start + size].clone()

    def _copy(self, offsets: Sequence[int], sizes: Sequence[int]) -> Tensor:
        target = torch.empty(tuple(sizes), dtype=self.dtype)
        copied = 0
        for piece_offsets, values in self._pieces:
            low = [max(*pair) for pair in zip(offsets, piece_offsets, strict=True)]
            high = [
                min(first + size, second + length)
                for first, size, second, length in zip(offsets, sizes, piece_offsets, values.shape, strict=True)
            ]
            if any(start >= end for start, end in zip(low, high, strict=True)):
                continue
            target[_slices(low, high, offsets)] = values[_slices(low, high, piece_offsets)]
            copied += math.prod(end - start for start, end in zip(low, high, strict=True))
        if copied != target.numel():
            raise ValueError(f"{target.numel() - copied} of {target.numel()} values of a tensor are not in the files")
        return target


def _slices(low: Sequence[int], high: Sequence[int], origin: Sequence[int]) -> tuple[slice, ...]:
    return tuple(slice(start - zero, end - zero) for start, end, zero in zip(low, high, origin, strict=True))


def full(state: Any) -> Any:
    """Return a state with whole tensors in place of saved ones."""
    return map_leaves(lambda _, value: value.full() if isinstance(value, SavedTensor) else value, state)


def map_leaves(function: Callable[[str, Any], Any], state: Any, path: str = "") -> Any:
    """Return a state in which the function has replaced each value, of which it also gets the path, such as
    "training/model/head.weight"."""
    kind = type(state)
    if kind in (dict, OrderedDict):
        mapped = kind((key, map_leaves(function, value, _join(path, key))) for key, value in state.items())
        if kind is OrderedDict:
            mapped.__dict__.update(vars(state))  # a module's state dict has its versions there
        return mapped
    if kind in (list, tuple):
        return kind(map_leaves(function, value, _join(path, number)) for number, value in enumerate(state))
    return function(path, state)


def _join(path: str, key: object) -> str:
    name = quote(str(key), safe=" !#$&'()*+,:;=?@[]")
    return f"{path}/{name}" if path else name
