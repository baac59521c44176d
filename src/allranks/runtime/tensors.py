"""Shards of tensors, and tensors in a checkpoint, of which each rank reads the regions that it needs."""

from __future__ import annotations

import math
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, distributed

_SPLIT_BYTES = 1 << 16
"""Minimum size of a replicated tensor that its ranks save in parts."""

Piece = tuple[tuple[int, ...], Tensor]
"""Offsets of a region within the whole tensor, and its values."""


@dataclass(frozen=True)
class TensorShard:
    """The part of a tensor that this rank has.

    shape:  shape of the whole tensor
    dtype:  type of the tensor
    pieces: the regions that the part consists of
    copies: number of ranks that have the same part, which is then one region
    copy:   number of this rank among them
    """

    shape: tuple[int, ...]
    dtype: torch.dtype
    pieces: tuple[Piece, ...]
    copies: int = 1
    copy: int = 0

    @classmethod
    def whole(cls, tensor: Tensor, copies: int = 1, copy: int = 0) -> TensorShard:
        """Return the shard of a rank that has the whole tensor."""
        piece = (0,) * tensor.dim(), tensor.detach()
        return cls(tuple(tensor.shape), tensor.dtype, (piece,), copies, copy)

    def to_save(self, number: int) -> TensorShard:
        """Return the share that this rank saves of a part that several ranks have.

        number: index of the tensor in the state, by which small tensors are distributed over the ranks
        """
        if self.copies == 1 or not self.pieces:
            return self
        ((offsets, values),) = self.pieces
        rows = values.shape[0] if values.dim() else 1
        if rows < self.copies or values.nbytes < _SPLIT_BYTES:
            return self if self.copy == number % self.copies else replace(self, pieces=())
        low, high = self.copy * rows // self.copies, (self.copy + 1) * rows // self.copies
        return replace(self, pieces=(((offsets[0] + low, *offsets[1:]), values[low:high]),))


def replicated(tensor: Tensor) -> TensorShard:
    """Return the shard of a tensor with equal values on every rank."""
    return TensorShard.whole(tensor, distributed.get_world_size(), distributed.get_rank())


def flat_range(values: Tensor, shape: Sequence[int], start: int) -> TensorShard:
    """Return the shard of a range of a flattened tensor.

    values: the range, with one dimension
    shape:  shape of the whole tensor
    start:  where the range begins
    """
    pieces, position = [], 0
    for offsets, sizes in boxes(shape, start, start + len(values)):
        end = position + math.prod(sizes)
        pieces.append((offsets, values.detach()[position:end].view(sizes)))
        position = end
    return TensorShard(tuple(shape), values.dtype, tuple(pieces))


def boxes(shape: Sequence[int], start: int, end: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield offsets and sizes of the regions that a range of the flattened tensor consists of, in their order."""
    if start >= end:
        return
    if not shape:
        yield (), ()
        return
    row = math.prod(shape[1:])
    first, last = -(-start // row), end // row  # whole rows
    if start < first * row:
        yield from _within_row(shape, start, min(first * row, end))
    if first < last:
        yield (first, *(0 for _ in shape[1:])), (last - first, *shape[1:])
    if first <= last and last * row < end:
        yield from _within_row(shape, last * row, end)


def _within_row(shape: Sequence[int], start: int, end: int) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    row = math.prod(shape[1:])
    number = start // row
    for offsets, sizes in boxes(shape[1:], start - number * row, end - number * row):
        yield (number, *offsets), (1, *sizes)


def is_dtensor(value: object) -> bool:
    """Return whether a value is a DTensor.

    The class is not imported for this, which takes long: a DTensor exists only if it has been imported.
    """
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(value, module.DTensor)


def dtensor_shard(tensor: Any) -> TensorShard:
    """Return this rank's shard of a DTensor."""
    (chunk,) = tensor.__create_chunk_list__()  # the protocol of torch.distributed.checkpoint
    coordinates = tensor.device_mesh.get_coordinate()
    copies, copy = 1, 0
    for dimension, placement in enumerate(tensor.placements):
        if placement.is_replicate():
            size = tensor.device_mesh.size(dimension)
            copies, copy = copies * size, copy * size + coordinates[dimension]
    local = tensor.to_local().detach()
    # A rank may have nothing of a tensor. All of them save an empty one.
    pieces = ((tuple(chunk.offsets), local),) if local.numel() or not tensor.numel() else ()
    return TensorShard(tuple(tensor.shape), tensor.dtype, pieces, copies, copy)


class SavedTensor:
    """A tensor in a checkpoint, which is read from the files when it is used.

    read: returns a region of it, in memory of its own, for offsets and sizes; raises ValueError if it is incomplete
    """

    def __init__(
        self, shape: Sequence[int], dtype: torch.dtype, read: Callable[[Sequence[int], Sequence[int]], Tensor]
    ) -> None:
        self.shape = torch.Size(shape)
        self.dtype = dtype
        self.region = read

    def full(self) -> Tensor:
        """Return the whole tensor."""
        return self.region((0,) * len(self.shape), self.shape)

    def flat_range(self, start: int, size: int) -> Tensor:
        """Return a range of the flattened tensor."""
        parts = [self.region(*box).flatten() for box in boxes(self.shape, start, start + size)]
        return torch.cat(parts) if parts else torch.empty(0, dtype=self.dtype)


def full(state: Any) -> Any:
    """Return a state with whole tensors in place of saved ones."""
    return map_leaves(lambda _, value: value.full() if isinstance(value, SavedTensor) else value, state)


StatePath = tuple[str, ...]
"""The keys that lead to a value of a state, such as ("training", "model", "head.weight")."""


def map_leaves(function: Callable[[StatePath, Any], Any], state: Any, path: StatePath = ()) -> Any:
    """Apply a function to the path and value of each leaf of a state, and return the new state."""
    kind = type(state)
    if kind in (dict, OrderedDict):
        mapped = kind((key, map_leaves(function, value, (*path, str(key)))) for key, value in state.items())
        if kind is OrderedDict:
            mapped.__dict__.update(vars(state))  # a module's state dict has its versions there
        return mapped
    if kind in (list, tuple):
        return kind(map_leaves(function, value, (*path, str(number))) for number, value in enumerate(state))
    return function(path, state)
