"""One rank's file of a checkpoint: tensors in the safetensors format.

The header also has the offsets of each tensor in the whole one, as torch.distributed.checkpoint writes them, whose
HuggingFaceStorageReader reads the files of a checkpoint together.

Sources: https://huggingface.co/docs/safetensors (format), torch/distributed/checkpoint/_hf_utils.py (offsets)
"""

from __future__ import annotations

import json
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e5m2: "F8_E5M2",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
"""Types that the format has, with their names in it."""

_BY_NAME = {name: dtype for dtype, name in DTYPES.items()}
_OFFSETS = "DCP_SHARDING_INFO"

Piece = tuple[tuple[int, ...], Tensor]
"""Offsets of a piece within the whole tensor, and its values."""


@dataclass(frozen=True)
class Layout:
    """Where everything is in a file.

    header: the first bytes
    starts: where each tensor's values begin, in bytes
    size:   size of the file in bytes
    """

    header: bytes
    starts: Mapping[str, int]
    size: int


def layout(pieces: Mapping[str, Piece]) -> Layout:
    """Return the layout of a file with these pieces of tensors, by the tensors' names."""
    # The format allows no holes. In this order, every tensor is aligned to the size of its elements.
    names = sorted(pieces, key=lambda name: -pieces[name][1].element_size())
    entries: dict[str, Any] = {
        "__metadata__": {
            "format": "pt",
            "DCP_VERSION": "1.0",
            _OFFSETS: json.dumps({name: {"saved_offsets": list(pieces[name][0])} for name in names}),
        }
    }
    starts, position = {}, 0
    for name in names:
        values = pieces[name][1]
        starts[name] = position
        position += values.nbytes
        entries[name] = {
            "dtype": DTYPES[values.dtype],
            "shape": list(values.shape),
            "data_offsets": [starts[name], position],
        }
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % 8)
    header = struct.pack("<Q", len(text)) + text
    return Layout(header, {name: len(header) + start for name, start in starts.items()}, len(header) + position)


def read(path: Path) -> dict[str, Piece]:
    """Return the pieces in a file, memory-mapped. Changes of the tensors do not change the file."""
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    (length,) = struct.unpack_from("<Q", mapped)
    entries = json.loads(mapped[8 : 8 + length])
    metadata = entries.pop("__metadata__")
    offsets = json.loads(metadata[_OFFSETS])
    pieces = {}
    for name, entry in entries.items():
        low, high = entry["data_offsets"]
        dtype = _BY_NAME[entry["dtype"]]
        if low == high:
            values = torch.empty(0, dtype=dtype)
        else:
            count = (high - low) // dtype.itemsize
            values = torch.frombuffer(mapped, dtype=dtype, count=count, offset=8 + length + low)
        pieces[name] = (tuple(offsets[name]["saved_offsets"]), values.reshape(entry["shape"]))
    return pieces
