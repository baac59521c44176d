"""The weights in a checkpoint that a script saved with torch.distributed.checkpoint.

Its file .metadata is a pickle. Only the classes that describe a checkpoint are unpickled from it, so that no code in
the file is executed. torch.distributed.checkpoint reads the tensors with weights_only=True.

Source: https://docs.pytorch.org/docs/stable/distributed.checkpoint.html
"""

from __future__ import annotations

import pathlib
import pickle
import re
from pathlib import Path
from typing import Any

import torch
from pickled_enums import member
from torch import Tensor
from torch.distributed.checkpoint.filesystem import FileSystemReader
from torch.distributed.checkpoint.metadata import Metadata, TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import load
from weights import Weight, Weights, bad_checkpoints

from allranks.errors import InputError, Problem

_METADATA = ".metadata"
_MODULES = ("torch.distributed.checkpoint.metadata", "torch.distributed.checkpoint.filesystem")
_MODEL = "model"


def is_one(folder: Path) -> bool:
    """Return whether a folder is such a checkpoint, or has some in it."""
    return bool(_checkpoints(folder))


def select(folder: Path, step: int | None) -> Path:
    """Return the folder of a step's checkpoint, or of the one whose name has the highest number.

    The step is the last number in a folder's name, as in step-300 and checkpoint_300. Raise InputError if there is no
    checkpoint of the step.
    """
    found = _checkpoints(folder)
    if step is not None:
        found = [path for path in found if _step(path) == step]
        if not found:
            raise InputError(Problem("input step", f"no checkpoint of step {step}", "the step of a checkpoint"))
    return max(found, key=lambda path: (_step(path), path.name))


def weights_of(folder: Path, part: str | None) -> Weights:
    """Return the weights in a part of a checkpoint.

    part: the keys of the saved state dict that lead to the model's, joined by dots, such as app.model. None: those of
          the only state dict called model, or the whole if it has only tensors.

    Raise InputError if the files are damaged, hold something else, or have no such part.
    """
    reader = _Reader(folder)
    try:
        metadata = reader.read_metadata()
    except (pickle.UnpicklingError, OSError, EOFError, AttributeError, ValueError, IndexError) as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise bad_checkpoints(
            f"{folder / _METADATA}: {reason}", "an undamaged checkpoint of torch", "use another"
        ) from None
    keys = _keys(metadata)
    prefix = _part(keys, metadata, part)
    return {
        ".".join(path[len(prefix) :]): _weight(folder, name, tensor)
        for name, path in keys.items()
        if path[: len(prefix)] == prefix
        and isinstance(tensor := metadata.state_dict_metadata[name], TensorStorageMetadata)
    }


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("builtins", "getattr"):
            return member
        if module in _MODULES or (module, name) in {("torch", "Size"), ("torch.serialization", "_get_layout")}:
            return super().find_class(module, name)
        if module in {"pathlib", "pathlib._local"} and name.endswith("Path"):
            return pathlib.PurePath
        if module == "torch" and isinstance(getattr(torch, name, None), torch.dtype):
            return getattr(torch, name)
        raise pickle.UnpicklingError(f"it holds {module}.{name}, which describes no checkpoint")


class _Reader(FileSystemReader):
    """Reads a checkpoint without executing code in its metadata."""

    def read_metadata(self, *args: Any, **kwargs: Any) -> Metadata:  # noqa: ARG002, as the overridden method
        with (Path(self.path) / _METADATA).open("rb") as file:
            metadata: Metadata = _Unpickler(file).load()
        if not isinstance(metadata, Metadata):
            raise pickle.UnpicklingError("it is not the metadata of a checkpoint")
        return metadata


def _checkpoints(folder: Path) -> list[Path]:
    if (folder / _METADATA).is_file():
        return [folder]
    return [file.parent for file in folder.glob(f"*/{_METADATA}")]


def _step(path: Path) -> int:
    numbers = re.findall(r"\d+", path.name)
    return int(numbers[-1]) if numbers else -1


def _keys(metadata: Metadata) -> dict[str, tuple[str, ...]]:
    """Return the keys that lead to each tensor, by the tensor's name."""
    paths = metadata.planner_data or {}
    return {
        name: tuple(map(str, paths.get(name, (name,))))
        for name, value in metadata.state_dict_metadata.items()
        if isinstance(value, TensorStorageMetadata)
    }


def _part(keys: dict[str, tuple[str, ...]], metadata: Metadata, part: str | None) -> tuple[str, ...]:
    if part is not None:
        named = tuple(part.split("."))
        if any(path[: len(named)] == named for path in keys.values()):
            return named
    elif models := {path[: path.index(_MODEL) + 1] for path in keys.values() if _MODEL in path[:-1]}:
        if len(models) == 1:
            return models.pop()
    elif keys and len(keys) == len(metadata.state_dict_metadata):
        return ()
    parts = sorted({".".join(path[:-1]) for path in keys.values()} - {""})
    raise InputError(
        Problem(
            where="input part",
            found=f"{part or 'nothing'}, and the checkpoint has tensors in {', '.join(parts[:8]) or 'no part'}",
            expected="one part with the weights of a model",
            fix="name the part",
        )
    )


def _weight(folder: Path, name: str, metadata: TensorStorageMetadata) -> Weight:
    shape, dtype = tuple(metadata.size), metadata.properties.dtype

    def read() -> Tensor:
        value = torch.empty(shape, dtype=dtype)
        load({name: value}, storage_reader=_Reader(folder), no_dist=True)
        return value

    return Weight(shape, dtype, read)
