"""The state of a training as a checkpoint has it: its tensors by their paths, and a structure with everything else."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from allranks.runtime.tensors import Path, TensorShard, is_dtensor, map_leaves, of_dtensor

STRUCTURE = "structure"
"""Name of the structure in a checkpoint."""


def random_states_name(rank: int) -> str:
    """Return the name of a rank's random states in a checkpoint."""
    return f"random_states.{rank}"


def name_of(path: Path) -> str:
    """Return the name of the tensor at a path, as torch.distributed.checkpoint builds it."""
    return ".".join(path)


def encode(value: object) -> io.BytesIO:
    """Return the bytes of a value that consists of tensors and plain values. Raise TypeError for any other."""
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    if unsafe := torch.serialization.get_unsafe_globals_in_checkpoint(buffer):
        raise TypeError(f"a part's state holds {', '.join(sorted(unsafe))}, not only tensors and plain values")
    return buffer


def decode(data: io.BytesIO) -> Any:
    """Return the value of `encode`. Executes no code."""
    return torch.load(data, map_location="cpu", weights_only=True)


def split(state: Any) -> tuple[Any, dict[Path, Tensor | TensorShard]]:
    """Return the structure of a state, and its tensors by their paths. Raise TypeError if two have the same name.

    In the structure, a meta tensor of the same shape stands for each tensor. Tensors that are not dense remain in it.
    """
    leaves: dict[Path, Tensor | TensorShard] = {}
    names: set[str] = set()

    def replace(path: Path, value: Any) -> Any:
        if is_dtensor(value):
            value = of_dtensor(value)
        if not isinstance(value, TensorShard) and not (isinstance(value, Tensor) and _is_plain(value)):
            return value
        if name_of(path) in names:
            raise TypeError(f"a part's state has two tensors with the name {name_of(path)}")
        names.add(name_of(path))
        leaves[path] = value
        return torch.empty(value.shape, dtype=value.dtype, device="meta")

    return map_leaves(replace, state), leaves


def join(structure: Any, read: Callable[[str, Tensor], Any]) -> Any:
    """Return the state of a structure. read: returns the value for the placeholder of a tensor, by its name."""

    def replace(path: Path, value: Any) -> Any:
        return read(name_of(path), value) if isinstance(value, Tensor) and value.is_meta else value

    return map_leaves(replace, structure)


def _is_plain(tensor: Tensor) -> bool:
    return tensor.layout == torch.strided and not tensor.is_quantized and not tensor.is_meta


def aliases(leaves: Mapping[Path, Tensor | TensorShard]) -> dict[Path, Path]:
    """Return the paths of tensors that are the same as an earlier one, such as tied weights, with that one's path.

    Only whole tensors: a rank may have an empty shard of others, and could not compare them."""
    first: dict[tuple[object, ...], Path] = {}
    found: dict[Path, Path] = {}
    for path, value in leaves.items():
        if isinstance(value, TensorShard):
            if not value.pieces or value.pieces[0][1].shape != value.shape:
                continue
            value = value.pieces[0][1]
        if not value.numel():
            continue
        identity = (value.data_ptr(), value.device, value.dtype, value.shape, value.stride())
        if (earlier := first.setdefault(identity, path)) != path:
            found[path] = earlier
    return found
