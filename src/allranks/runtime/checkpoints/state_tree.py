"""Part a state into its tensors and its structure, and join them again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import torch
from torch import Tensor

from allranks.runtime.checkpoints.tensor_file import DTYPES
from allranks.runtime.tensors.tensor_shards import TensorShard, is_dtensor, of_dtensor

Leaves = dict[str, Tensor | TensorShard]


def part(state: Any) -> tuple[Any, Leaves]:
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

    return _walk("", state, replace), leaves


def join(structure: Any, read: Callable[[str, Tensor], Any]) -> Any:
    """Return the state of a structure. read: returns the value in the place of a placeholder, by path."""

    def replace(path: str, value: Any) -> Any:
        return read(path, value) if isinstance(value, Tensor) and value.is_meta else value

    return _walk("", structure, replace)


def _walk(path: str, value: Any, replace: Callable[[str, Any], Any]) -> Any:
    kind = type(value)
    if kind in (dict, OrderedDict):
        walked = kind((key, _walk(_join(path, key), item, replace)) for key, item in value.items())
        if kind is OrderedDict:
            walked.__dict__.update(vars(value))  # a module's state dict has its versions there
        return walked
    if kind in (list, tuple):
        return kind(_walk(_join(path, number), item, replace) for number, item in enumerate(value))
    return replace(path, value)


def _join(path: str, key: object) -> str:
    name = quote(str(key), safe=" !#$&'()*+,:;=?@[]")
    return f"{path}/{name}" if path else name


def _is_plain(tensor: Tensor) -> bool:
    return tensor.layout == torch.strided and not tensor.is_quantized and not tensor.is_meta and tensor.dtype in DTYPES


def aliases(leaves: Mapping[str, Tensor | TensorShard]) -> dict[str, str]:
    """Return the names of tensors that are the same as an earlier one, such as tied weights, with that one's name.

    Only whole tensors: of others, a rank may have an empty shard, and could not tell."""
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
