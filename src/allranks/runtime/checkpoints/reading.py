"""Open a checkpoint: its step, and the state of its parts, whose tensors are read where they are needed."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from allranks.runtime.checkpoints import manifest, state_tree, tensor_file
from allranks.runtime.checkpoints.folder import Entry
from allranks.runtime.tensors.saved_tensors import SavedTensor

STRUCTURE = "structure"
"""Name of the tensor that has the bytes of everything that is not a tensor, as `torch.save` writes it."""


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


def is_intact(entry: Entry, rank: int = 0, world_size: int = 1) -> bool:
    """Return whether the files of a checkpoint are complete and undamaged. Each rank checks a share of them."""
    return entry.manifest is not None and manifest.is_intact(entry.path, entry.manifest, rank, world_size)


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
        state_tree.join(structure["parts"], read),
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
