"""The weights in a checkpoint, each of which is read when it is needed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from allranks.errors import InputError, Problem

PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


@dataclass(frozen=True)
class Weight:
    """A tensor of a model. read: returns it on the CPU, contiguous."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    read: Callable[[], Tensor]

    @property
    def size(self) -> int:
        """Size in bytes."""
        return torch.Size(self.shape).numel() * self.dtype.itemsize


Weights = dict[str, Weight]


def converted(weights: Weights, precision: str) -> Weights:
    """Return the weights with all floating-point tensors in a precision."""
    if precision == "saved":
        return weights
    return {name: _converted(weight, PRECISIONS[precision]) for name, weight in weights.items()}


def _converted(weight: Weight, dtype: torch.dtype) -> Weight:
    if not weight.dtype.is_floating_point:
        return weight
    return Weight(weight.shape, dtype, lambda: weight.read().to(dtype))


def bad_checkpoints(found: str, expected: str, fix: str) -> InputError:
    """Return the error for checkpoints that cannot be used."""
    return InputError(Problem("input checkpoints", found, expected, fix))
