"""The state of a training in a checkpoint: tensors by their paths, and a structure with all other values."""

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from allranks.runtime.tensors import StatePath, TensorShard, dtensor_shard, is_dtensor, map_leaves

STRUCTURE = "structure"
"""Name of the structure in a checkpoint."""


def random_states_name(rank: int) -> str:
    """Return the name of a rank's random states in a checkpoint."""
    return f"random_states.{rank}"


def tensor_name(path: StatePath) -> str:
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


@dataclass(frozen=True)
class OwnState:
    """The state that one rank saves.

    shards:  tensors, or parts of them
    others:  the bytes of other values, by name
    aliases: tensors that are identical to another one, such as tied weights, with the path of the other
    """

    shards: dict[StatePath, TensorShard]
    others: dict[str, io.BytesIO]
    aliases: dict[StatePath, StatePath]


def own_state(parts: dict[str, Any], rank: int, random_states: dict[str, Any]) -> OwnState:
    """Return the state that a rank saves. parts: the states of all parts, by name

    Raise TypeError if a state has values that cannot be loaded without executing code.
    """
    structure, leaves = split(parts)
    aliases = _aliases(leaves)
    shards: dict[StatePath, TensorShard] = {}
    for number, (path, value) in enumerate(leaves.items()):
        if path in aliases:
            continue
        if isinstance(value, TensorShard):
            shards[path] = value.to_save(number)
        elif rank == 0:
            shards[path] = TensorShard.whole(value)
    others = {random_states_name(rank): encode(random_states)}
    if rank == 0:
        others[STRUCTURE] = encode(structure)
    return OwnState(shards, others, aliases)


def split(state: Any) -> tuple[Any, dict[StatePath, Tensor | TensorShard]]:
    """Return the structure of a state, and its tensors by their paths. Raise TypeError if two have the same name.

    In the structure, a meta tensor of the same shape stands for each tensor. Tensors that are not dense remain in it.
    """
    leaves: dict[StatePath, Tensor | TensorShard] = {}
    names: set[str] = set()

    def replace(path: StatePath, value: Any) -> Any:
        if is_dtensor(value):
            value = dtensor_shard(value)
        if not isinstance(value, TensorShard) and not (isinstance(value, Tensor) and _is_plain(value)):
            return value
        if tensor_name(path) in names:
            raise TypeError(f"a part's state has two tensors with the name {tensor_name(path)}")
        names.add(tensor_name(path))
        leaves[path] = value
        return torch.empty(value.shape, dtype=value.dtype, device="meta")

    return map_leaves(replace, state), leaves


def join(structure: Any, read: Callable[[str, Tensor], Any]) -> Any:
    """Return the state of a structure. read: returns the value for the placeholder of a tensor, by its name."""

    def replace(path: StatePath, value: Any) -> Any:
        return read(tensor_name(path), value) if isinstance(value, Tensor) and value.is_meta else value

    return map_leaves(replace, structure)


def _is_plain(tensor: Tensor) -> bool:
    return tensor.layout == torch.strided and not tensor.is_quantized and not tensor.is_meta


def _aliases(leaves: Mapping[StatePath, Tensor | TensorShard]) -> dict[StatePath, StatePath]:
    # Only of whole tensors: a rank may have an empty shard of others, and could not compare them.
    first: dict[tuple[object, ...], StatePath] = {}
    found: dict[StatePath, StatePath] = {}
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
