"""A tensor in a checkpoint, of which each rank reads the region that it needs."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote

import torch
from torch import Tensor


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
