"""The state in a checkpoint: split it into tensors and a structure to save it, and open it again."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from allranks.runtime.checkpoints import tensor_file
from allranks.runtime.checkpoints.manifest import Entry
from allranks.runtime.checkpoints.tensor_file import DTYPES
from allranks.runtime.tensors import SavedTensor, TensorShard, is_dtensor, map_leaves, of_dtensor

STRUCTURE = "structure"
"""Name of the tensor with everything that is not a tensor, as bytes of `torch.save`."""


@dataclass(frozen=True)
class SavedState:
    """The content of a checkpoint.

    step:          the step after which it was saved
    world_size:    number of ranks that saved it
    parts:         the states of the parts, by name, with a SavedTensor in place of each tensor
    random_states: returns the random states of a rank that saved it
    """

    step: int
    world_size: int
    parts: dict[str, Any]
    random_states: Callable[[int], dict[str, Any]]


def open_checkpoint(entry: Entry) -> SavedState:
    """Open a checkpoint that is intact. No code in it is executed."""
    assert entry.manifest is not None
    found: dict[str, list[tensor_file.Piece]] = {}
    for name in sorted(entry.manifest.files):
        for key, piece in tensor_file.read(entry.path / name).items():
            found.setdefault(key, []).append(piece)
    structure = decode(found[STRUCTURE][0][1])

    def read(path: str, placeholder: Tensor) -> SavedTensor:
        pieces = found.get(structure["aliases"].get(path, path), [])
        return SavedTensor(placeholder.shape, pieces[0][1].dtype if pieces else placeholder.dtype, pieces)

    return SavedState(
        entry.manifest.step,
        entry.manifest.world_size,
        join_state(structure["parts"], read),
        lambda rank: decode(found[random_states_name(rank)][0][1]),
    )


def random_states_name(rank: int) -> str:
    """Return the name of the tensor with the bytes of a rank's random states."""
    return f"random_states/{rank}"


def encode(value: object) -> Tensor:
    """Return the bytes of a value that consists of tensors and plain values. Raise TypeError for any other."""
    buffer = io.BytesIO()
    torch.save(value, buffer)
    buffer.seek(0)
    if unsafe := torch.serialization.get_unsafe_globals_in_checkpoint(buffer):
        raise TypeError(f"a part's state holds {', '.join(sorted(unsafe))}, not only tensors and plain values")
    return torch.frombuffer(bytearray(buffer.getbuffer()), dtype=torch.uint8)


def decode(data: Tensor) -> Any:
    """Return the value of `encode`. Executes no code."""
    return torch.load(io.BytesIO(data.numpy().tobytes()), map_location="cpu", weights_only=True)


Leaves = dict[str, Tensor | TensorShard]


def split_state(state: Any) -> tuple[Any, Leaves]:
    """Return the structure of a state, and its tensors by their paths, such as "training/model/head.weight".

    In the structure, a meta tensor of the same shape stands for each tensor. Tensors that are not dense remain in it.
    """
    leaves: Leaves = {}

    def replace(path: str, value: Any) -> Any:
        if is_dtensor(value):
            value = of_dtensor(value)
        if isinstance(value, TensorShard):
            placeholder = torch.empty(value.shape, dtype=value.local.dtype, device="meta")
        elif isinstance(value, Tensor) and _is_plain(value):
            value = value.detach()
            placeholder = torch.empty(value.shape, dtype=value.dtype, device="meta")
        else:
            return value
        if path in leaves:
            raise TypeError(f"a part's state has two tensors with the name {path}")
        leaves[path] = value
        return placeholder

    return map_leaves(replace, state), leaves


def join_state(structure: Any, read: Callable[[str, Tensor], Any]) -> Any:
    """Return the state of a structure. read: returns the value for the placeholder at a path."""

    def replace(path: str, value: Any) -> Any:
        return read(path, value) if isinstance(value, Tensor) and value.is_meta else value

    return map_leaves(replace, structure)


def _is_plain(tensor: Tensor) -> bool:
    return tensor.layout == torch.strided and not tensor.is_quantized and not tensor.is_meta and tensor.dtype in DTYPES


def aliases(leaves: Mapping[str, Tensor | TensorShard]) -> dict[str, str]:
    """Return the names of tensors that are the same as an earlier one, such as tied weights, with that one's name.

    Only whole tensors: a rank may have an empty shard of others, and could not compare them."""
    first: dict[tuple[object, ...], str] = {}
    found: dict[str, str] = {}
    for name, value in leaves.items():
        if isinstance(value, TensorShard):
            if value.local.shape != value.shape:
                continue
            value = value.local
        if not value.numel():
            continue
        identity = (value.data_ptr(), value.device, value.dtype, value.shape, value.stride())
        if (earlier := first.setdefault(identity, name)) != name:
            found[name] = earlier
    return found
